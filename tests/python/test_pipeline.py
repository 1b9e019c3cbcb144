"""Pipelines against plain modules: every family, in processes of this machine, in fp64."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

import pipeline_ranks  # noqa: E402

# Relative. AdamW divides by the roots of squared gradients, which are small in places: it spreads what the order of a sum
# changes.
BOUNDS = {"weights": 1e-9, "evaluation": 1e-9, "fp32": 1e-6}
CASES = {ranks: list(pipeline_ranks.cases(ranks)) for ranks in (2, 4)}


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """By ranks and rank, what each case found; all cases of so many ranks run together, once."""
    kept = {}

    def of(ranks):
        if ranks not in kept:
            folder = tmp_path_factory.mktemp(f"ranks{ranks}")
            program = Path(pipeline_ranks.__file__)
            done = subprocess.run([sys.executable, program, str(ranks), folder], stderr=subprocess.PIPE, text=True, env=os.environ)
            kept[ranks] = done, folder
        done, folder = kept[ranks]
        assert done.returncode == 0, done.stderr
        return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]

    return of


def bound(what):
    return BOUNDS.get(what.split()[0], 1e-12)


@pytest.mark.parametrize("ranks, case", [(ranks, case) for ranks in CASES for case in CASES[ranks]])
def test_trains_as_the_plain_module(found, ranks, case):
    if case == "runtime" and "PFEIFE_RUN" not in os.environ:
        pytest.skip("PFEIFE_RUN names no pfeife-run, whose gradients these are compared with")
    for rank, cases in enumerate(found(ranks)):
        assert case in cases, f"rank {rank} ended before: {list(cases)[-1:]}"
        assert "error" not in cases[case], cases[case]["error"]
        if cases[case] == "dies":
            continue
        far = {what: one for what, one in cases[case].items() if not isinstance(one, float) or not one <= bound(what)}
        assert far == {}, f"rank {rank}"


BEFORE = """
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(6))
    def forward(self, x, labels):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return {"loss": nn.functional.cross_entropy(x, labels), "logits": x}
model = Net()
batch = {"x": torch.randn(32, 8), "labels": torch.randint(8, (32,))}
data = [batch] * 3
"""
BEHIND = """
assert pipe(**batch)["logits"].shape == (32, 8) and pipe.rank == int(__import__("os").environ["RANK"])
"""


def test_the_readmes_lines_train_as_they_stand(tmp_path):
    """Under torchrun, but for a model, a cluster's devices and a CPU."""
    section = (Path(__file__).resolve().parents[2] / "python" / "README.md").read_text().split("\n## Train\n")[1]
    lines = section.split("```python\n")[1].split("```")[0]
    lines = lines.replace("devices=4", "devices=2").replace('device="cuda"', 'device="cpu"').replace('"folder"', f'"{tmp_path}/saved"')
    (tmp_path / "train.py").write_text(BEFORE + lines + BEHIND)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", tmp_path / "train.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "saved" / ".metadata").exists()


def test_a_rank_takes_the_card_of_its_number(monkeypatch):
    from pfeife._pipeline import own_device

    class Cards:
        chosen = 0
        current_device = staticmethod(lambda: Cards.chosen)
        device_count = staticmethod(lambda: 4)
        set_device = staticmethod(lambda number: setattr(Cards, "chosen", number))

    monkeypatch.setattr(torch, "get_device_module", lambda device: Cards)
    monkeypatch.setenv("LOCAL_RANK", "5")  # of a host where each process sees its own card
    assert own_device("cuda") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert own_device("cuda") == torch.device("cuda", 3) and Cards.chosen == 3
    Cards.chosen = 2
    assert own_device("cuda") == torch.device("cuda", 2)
    assert own_device("cuda:1") == torch.device("cuda", 1) and own_device("cpu") == torch.device("cpu")


def test_random_numbers_differ():
    """Of every step, microbatch and operator: numbers of their own, the same ones again."""
    from pfeife._operators import Moment

    moment = Moment(3, torch.device("cpu"))
    with moment.kept():
        drawn = {}
        for again in range(2):
            for step in range(3):
                for microbatch in range(3):
                    moment.step = step
                    moment.at(microbatch)
                    for operator in range(3):
                        moment.draw(operator)
                        number = float(torch.rand((), dtype=torch.float64))
                        assert drawn.setdefault((step, microbatch, operator), number) == number
    assert len(set(drawn.values())) == 27
