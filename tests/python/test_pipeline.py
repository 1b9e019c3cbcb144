"""Pipelines against plain modules: every family, in processes of this machine, in fp64."""

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


def bound(what):
    return BOUNDS.get(what.split()[0], 1e-12)


@pytest.mark.parametrize("ranks, case", [(ranks, case) for ranks in CASES for case in CASES[ranks]])
def test_trains_as_the_plain_module(found, ranks, case):
    if case == "runtime" and "PFEIFE_RUN" not in os.environ:
        pytest.skip("PFEIFE_RUN names no pfeife-run, whose gradients these are compared with")
    for rank, cases in enumerate(found(pipeline_ranks.__file__, ranks)):
        assert case in cases, f"rank {rank} ended before: {list(cases)[-1:]}"
        assert "error" not in cases[case], cases[case]["error"]
        if cases[case] == "dies":
            continue
        far = {what: value for what, value in cases[case].items() if not isinstance(value, float) or not value <= bound(what)}
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


WALKS = """
import copy, os, sys, torch, torch.distributed as dist, pfeife
from torch import nn
class Net(nn.Module):
    kinds = ["sliding", "full", "local", "global"]
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(8))
        self.sizes = {"sliding": 1.0, "full": 2.0, "local": 3.0, "global": 4.0}
        self.odd = len(sys.argv) > 1 and os.environ["RANK"] == "1"
    def forward(self, x):
        for layer in self.layers:
            parts = {}
            for kind in set(self.kinds):
                size = layer(x) * torch.tensor(self.sizes[kind], dtype=x.dtype)
                parts[kind] = torch.cos(size) if kind == "full" else torch.sin(size).exp()
            for kind in self.kinds:
                x = torch.tanh(x + parts[kind])
        return (x.sin() if self.odd else x).pow(2).mean()
dist.init_process_group("gloo")
torch.manual_seed(0)
model, x = Net().double(), torch.randn(8, 8, dtype=torch.float64)
plain = copy.deepcopy(model)
cluster = pfeife.uniform_cluster(2, memory="1 GiB", peak={"fp32": "1 TFLOP/s"}, memory_bandwidth="100 GB/s")
plan = pfeife.plan(model, x, cluster, microbatches=4, families=["1f1b"], baselines=[], threads=1)
pipe = pfeife.Pipeline(model, plan, timeout=100)
pipe.step(x)
plain(x).backward()
wanted = dict(plain.named_parameters())
assert all((parameter.grad - wanted[name].grad).abs().max() < 1e-12 for name, parameter in pipe.named_parameters())
assert max(pipe.check(x).gradients.values()) < 1e-12
print("same" if pipe.plan is plan else "adopted", flush=True)
"""


def started(tmp_path, program, seeds, *words):
    (tmp_path / "train.py").write_text(program)
    port = str(29000 + os.getpid() % 900)
    same = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(len(seeds)), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", tmp_path / "train.py", *words],
            env={**same, "RANK": str(rank), "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, seed in enumerate(seeds)
    ]
    return [process.communicate(timeout=300) for process in ranks]


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4)])
def test_processes_that_walk_over_sets_in_other_orders_train_one_graph(tmp_path, seeds):
    outputs = started(tmp_path, WALKS, seeds)
    assert [out.strip() for out, _ in outputs] == ["same", "adopted"], outputs


def test_a_graph_that_differs_is_named_by_its_first_node(tmp_path):
    outputs = started(tmp_path, WALKS, (1, 1), "odd")
    for _, err in outputs:
        assert "another graph or plan than rank 0" in err and "the order of a set" in err and "'%sin" in err, err


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
        for _ in range(2):
            for step in range(3):
                for microbatch in range(3):
                    moment.step = step
                    moment.at(microbatch)
                    for operator in range(3):
                        moment.draw(operator)
                        number = float(torch.rand((), dtype=torch.float64))
                        assert drawn.setdefault((step, microbatch, operator), number) == number
    assert len(set(drawn.values())) == 27
