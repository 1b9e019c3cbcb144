"""What following a row costs: pfeife.Pipeline and torch.distributed.pipelining on the same schedule, in turn, in one run.

Two Gloo ranks, four stages of one tiny product, so that nothing but bookkeeping, autograd and messages is left.
Usage: PYTHONPATH=python pipeline_overhead.py [FAMILY [REPETITIONS [MS]]]; interleaved_1f1b and zb1p have a counterpart in torch.
MS: every F, B and I computes as long besides: what part of it is the other processor time of a step? A process that slept
would measure the machine instead: after 10 ms of sleep the same four products cost five times as much.
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
compute_ms = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
computed_s = 0.0


def compute():
    global computed_s
    begun = time.thread_time()
    end = time.perf_counter() + compute_ms * 1e-3
    while time.perf_counter() < end:
        pass
    computed_s += time.thread_time() - begun


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        compute()
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        compute()
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
    parts = [nn.Sequential(part, Then(Slow.apply)) if compute_ms else part for part in chain.parts]
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
        if compute_ms:
            do.update({kind: lambda action, does=do[kind]: (compute(), does(action)) for kind in "FBI"})
        return pipe

    return make


def bare(row, rank):
    """The row's products and messages written out, without anything that could run another model: what is no bookkeeping."""
    chain = Chain()
    owner = [stage % RANKS for stage in range(STAGES)]
    parts = [nn.Sequential(part, Then(Slow.apply)) if compute_ms else part for part in chain.parts]

    def step(x):
        micro = x.chunk(MICROBATCHES)
        ends, values, gradients, sends = {}, {}, {}, []
        for kind, stage, microbatch, other in row:
            at = stage, microbatch
            if kind == "F":
                start = values.pop(at).requires_grad_() if stage else micro[microbatch]
                ends[at] = start, parts[stage](start)
                if stage == STAGES - 1:
                    gradients[at] = torch.ones(4, 8)
            elif kind in ("B", "I"):
                start, end = ends[at]
                if kind == "B":
                    torch.autograd.backward(end, gradients[at])
                    values[at] = start.grad
                elif stage:
                    (values[at],) = torch.autograd.grad(end, start, gradients[at], retain_graph=True)
            elif kind == "W":
                start, end = ends.pop(at)
                weight = chain.parts[stage].weight
                (more,) = torch.autograd.grad(end, weight, gradients.pop(at))
                weight.grad = more if weight.grad is None else weight.grad + more
            elif kind.startswith("SEND"):
                value = ends[at][1].detach() if kind == "SEND_F" else values.pop(at)
                sends.append(dist.isend(value, owner[other]))
            else:
                into = torch.empty(4, 8)
                dist.irecv(into, owner[other]).wait()
                (values if kind == "RECV_F" else gradients)[at] = into
        for one in sends:
            one.wait()

    return step


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
    alone = bare(pipe.row, rank)
    runs = {"bare": lambda: alone(x), "pfeife": lambda: pipe.step(x), "torch": lambda: theirs(x)}
    spent = {name: [] for name in runs}
    for repetition in range(3 + repetitions):
        for name, run in runs.items():
            dist.barrier()
            begun = time.process_time() - computed_s
            run()
            if repetition >= 3:
                spent[name].append(time.process_time() - computed_s - begun)
    actions = len(pipe.row)
    if rank == 0:
        for name, times in spent.items():
            best, middle = min(times), sorted(times)[len(times) // 2]
            print(f"{family} {name:7} {actions} actions: best {best / actions * 1e6:6.1f}, median {middle / actions * 1e6:6.1f} us CPU each")
            if compute_ms:
                computing = compute_ms * 1e-3 * sum(one.kind in "FBI" for one in pipe.row)
                print(f"  of {compute_ms:g} ms an F, B or I: best {min(times) / computing:.2%}, median {middle / computing:.2%}")
        print(f"ratio of the best {min(spent['pfeife']) / min(spent['torch']):.2f}")
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
