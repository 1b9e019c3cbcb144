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
            assert done.returncode == 0, done.stderr
            kept[ranks] = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]
        return kept[ranks]

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
