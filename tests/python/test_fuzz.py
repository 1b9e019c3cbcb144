"""A few random modules under plans of every family in both runtimes; fuzz_pipelines.py goes on with more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: pipelines are not tested here")

SEEDS = os.environ.get("PFEIFE_FUZZ_SEEDS", "0:24")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    file = tmp_path_factory.mktemp("fuzz") / "results.json"
    program = Path(__file__).with_name("fuzz_pipelines.py")
    done = subprocess.run([sys.executable, "-W", "ignore", program, "--seeds", SEEDS, "--results", file], capture_output=True, text=True)
    assert file.exists(), done.stderr
    return json.loads(file.read_text())


def test_every_plan_that_is_given_trains_as_the_plain_module(results):
    wrong = [f"{result['case']}: {result['why']}" for result in results if result["pipeline"] in ("error", "differs", "died")]
    assert not wrong, "\n".join(wrong)


def test_pfeife_run_takes_the_same_plans(results):
    if "PFEIFE_RUN" not in os.environ:
        pytest.skip("PFEIFE_RUN names no pfeife-run")
    wrong = [f"{result['case']}: {result['runtime_why']}" for result in results if result.get("runtime") == "error"]
    assert not wrong, "\n".join(wrong)


def test_most_modules_are_planned_and_run(results):
    """So that the others are not right because nothing ran."""
    assert sum(result["pipeline"] == "equal" for result in results) > 0.8 * len(results)
