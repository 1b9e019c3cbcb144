"""The scripts of python/examples, as torchrun starts them on processors: their losses are those of training without pipelines."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY

torch = pytest.importorskip("torch", reason="torch is not installed: examples are not tested here")

EXAMPLES = REPOSITORY / "python" / "examples"


def losses(*command, **environment):
    """[step] That rank 0 prints."""
    own = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environment}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"^step \d+ loss (.*)$", done.stdout, re.MULTILINE)]


def torchrun(script, ranks, *options):
    return losses(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, EXAMPLES / script, *options)


def loaded(script):
    spec = importlib.util.spec_from_file_location(script.removesuffix(".py"), EXAMPLES / script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(network, steps, norm=None):
    """[step] Of steps with these batches each, which have the same number of samples."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    found = []
    for batches in steps:
        loss = sum(network(**batch) for batch in batches) / len(batches)
        loss.backward()
        if norm is not None:
            torch.nn.utils.clip_grad_norm_(network.parameters(), norm)
        optimizer.step()
        optimizer.zero_grad()
        found.append(float(loss.detach()))
    return found


def test_train_on_cpu():
    script = loaded("train_on_cpu.py")
    torch.manual_seed(0)
    wanted = plain(script.Network(), [[batch] for batch in script.batches()], norm=1.0)
    assert torchrun("train_on_cpu.py", 2) == pytest.approx(wanted, abs=2e-5)


def test_dp_pp_fsdp2():
    script = loaded("dp_pp_fsdp2.py")
    torch.manual_seed(0)
    wanted = plain(script.Network(), zip(script.batches(0), script.batches(1)))
    assert torchrun("dp_pp_fsdp2.py", 4) == pytest.approx(wanted, abs=2e-5)


def test_gpt2_on_several_hosts(tmp_path):
    """Slurm's part is played by two programs: the second starts both hosts' torchrun here."""
    pytest.importorskip("transformers", reason="transformers is not installed: gpt2.py is not tested here")
    for name, text in {
        "scontrol": "echo localhost; echo other",
        "srun": '"$@" & "$@"; wait $!',
        "torchrun": f'exec {sys.executable} -m torch.distributed.run "$@"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    slurm = dict(SLURM_JOB_NODELIST="both", SLURM_NNODES="2", SLURM_GPUS_ON_NODE="1", SLURM_JOB_ID="7", SLURM_SUBMIT_DIR=str(EXAMPLES))
    options = ["--size", "tiny", "--steps", 2, "--samples", 8, "--microbatches", 4, "--folder", tmp_path / "checkpoint"]
    found = losses("bash", EXAMPLES / "several_hosts.sbatch", *options, PATH=f"{tmp_path}:{os.environ['PATH']}", **slurm)
    assert len(found) == 2 and all(10 < loss < 12 for loss in found)  # log of 50257 tokens is 10.8
    assert (tmp_path / "checkpoint" / ".metadata").exists()
