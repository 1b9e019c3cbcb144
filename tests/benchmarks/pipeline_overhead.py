"""What following a row costs: pfeife.Pipeline and torch.distributed.pipelining on the same schedule, in turn, in one run.

Two Gloo ranks, four stages of one tiny product, so that nothing but bookkeeping, autograd and messages is left.
Usage: PYTHONPATH=python pipeline_overhead.py [FAMILY [REPETITIONS [MS]]]; interleaved_1f1b and zb1p have a counterpart in torch.
MS: every F, B and I sleeps as long besides, as a card would compute: what part of it is the processor time of a step?
"""

import os
import sys
import time
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
import pipeline_ranks  # noqa: E402
from pfeife._pipeline import Pipeline  # noqa: E402

RANKS, STAGES, MICROBATCHES = 2, 4, 16
wait_ms = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        time.sleep(wait_ms * 1e-3)
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(wait_ms * 1e-3)
        return gradient


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(STAGES))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x.sum()


class Then(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def torchs(family, rank):
    chain = Chain()
    parts = [nn.Sequential(part, Then(Slow.apply)) if wait_ms else part for part in chain.parts]
    stages = [PipelineStage(parts[s], s, STAGES, torch.device("cpu")) for s in (rank, rank + RANKS)]
    kind = {"interleaved_1f1b": ScheduleInterleaved1F1B, "zb1p": ScheduleInterleavedZeroBubble}[family]
    schedule = kind(stages, MICROBATCHES, loss_fn=lambda output, target: output.sum(), scale_grads=False)
    last = rank == RANKS - 1
    return lambda x: schedule.step(*[] if last else [x], target=x if last else None, return_outputs=False)


def ours(family):
    chain = Chain()
    x = torch.ones(4, 8)
    capture = pipeline_ranks.Captured(chain, (x,))
    plan = pipeline_ranks.planned(capture, family, RANKS, MICROBATCHES)

    def make():
        pipe = Pipeline(capture, plan)
        do = pipe._executor._do
        if wait_ms:
            do.update({kind: lambda action, does=do[kind]: (time.sleep(wait_ms * 1e-3), does(action)) for kind in "FBI"})
        return pipe

    return make


def main():
    family = sys.argv[1] if len(sys.argv) > 1 else "interleaved_1f1b"
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    make = ours(family)
    rank = 0 if os.fork() else 1
    store = dist.TCPStore("127.0.0.1", 29671, RANKS, rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=RANKS)
    pipe = make()
    theirs = torchs(family, rank)
    x = torch.ones(MICROBATCHES * 4, 8)
    runs = {"pfeife": lambda: pipe.step(x), "torch": lambda: theirs(x)}
    spent = {name: [] for name in runs}
    for repetition in range(3 + repetitions):
        for name, run in runs.items():
            dist.barrier()
            begun = time.process_time()
            run()
            if repetition >= 3:
                spent[name].append(time.process_time() - begun)
    actions = len(pipe._row)
    if rank == 0:
        for name, times in spent.items():
            best, middle = min(times), sorted(times)[len(times) // 2]
            print(f"{family} {name:7} {actions} actions: best {best / actions * 1e6:6.1f}, median {middle / actions * 1e6:6.1f} us CPU each")
            if wait_ms:
                waiting = wait_ms * 1e-3 * sum(one.kind in "FBI" for one in pipe._row)
                print(f"  of {wait_ms:g} ms an F, B or I: best {min(times) / waiting:.2%}, median {middle / waiting:.2%}")
        print(f"ratio of the best {min(spent['pfeife']) / min(spent['torch']):.2f}")
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
