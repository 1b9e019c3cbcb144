#!/usr/bin/env python3
"""Records what torch.distributed.pipelining does on the processors of this machine, for `pfeife-exp compare`.

    record.py OUT [--ranks 2] [--microbatches 4] [--steps 5] [--hidden 64] [--schedules gpipe,1f1b,...]

For each schedule OUT/SCHEDULE has rank0.json.gz, rank1.json.gz, ..., each as torch.profiler exports it; schedule.csv, the
order of the actions as torch has it; and plan.yaml's config, OUT/SCHEDULE.yaml. OUT/blocks.csv are the times of the model's
blocks, measured on one process beforehand.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, schedules
from torch.profiler import ProfilerActivity, profile, schedule

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "versus_torch"))
from named_actions import name_actions  # noqa: E402
from stack import Block  # noqa: E402

SCHEDULES = {  # name: (class, stages a rank, placement)
    "gpipe": (schedules.ScheduleGPipe, 1, "loop"),
    "1f1b": (schedules.Schedule1F1B, 1, "loop"),
    "interleaved_1f1b": (schedules.ScheduleInterleaved1F1B, 2, "loop"),
    "looped_bfs": (schedules.ScheduleLoopedBFS, 2, "loop"),
    "interleaved_zb": (schedules.ScheduleInterleavedZeroBubble, 2, "loop"),
    "zbv": (schedules.ScheduleZBVZeroBubble, 2, "v"),
    "dualpipev": (schedules.ScheduleDualPipeV, 2, "v"),
}
BLOCKS_A_STAGE = 2
HEADS = 4


def stage_numbers(rank: int, ranks: int, each: int, placement: str) -> list[int]:
    if placement == "v":
        return [rank, 2 * ranks - 1 - rank]
    return list(range(rank, ranks * each, ranks))


def inputs(options, rank_microbatches: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(rank_microbatches * options.samples, options.sequence, options.hidden)


def blocks(options, count: int) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(*[Block(options.hidden, HEADS) for _ in range(count)])


def median_ms(work, repeats: int = 30) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[5:])


def block_times(options) -> tuple[float, float, float]:
    """Forward, backward of inputs and of weights, ms, of one block and one microbatch."""
    torch.set_num_threads(1)
    block = blocks(options, 1)
    x = inputs(options, 1).requires_grad_()
    parameters = list(block.parameters())
    grad = torch.ones_like(x)
    forward = median_ms(lambda: block(x))
    output = block(x)
    both = median_ms(lambda: torch.autograd.grad(output, [x, *parameters], grad, retain_graph=True))
    of_input = median_ms(lambda: torch.autograd.grad(output, [x], grad, retain_graph=True))
    return forward, of_input, max(both - of_input, 0.01)


def single_row(name: str, stage: int, options) -> list[str]:
    """What the schedules of one stage a rank do (torch 2.11's _get_pipeline_order of 1F1B has forwards that do not run)."""
    count = options.microbatches
    ahead = count if name == "gpipe" else min(count, options.ranks - stage)
    row = [f"{stage}F{m}" for m in range(ahead)]
    for m in range(count):
        row.append(f"{stage}B{m}")
        if ahead + m < count:
            row.append(f"{stage}F{ahead + m}")
    return row


def run(rank: int, options, name: str, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=options.ranks)
    kind, each, placement = SCHEDULES[name]
    count = options.ranks * each
    whole = blocks(options, count * BLOCKS_A_STAGE)
    stages = []
    for s in stage_numbers(rank, options.ranks, each, placement):
        part = whole[s * BLOCKS_A_STAGE:(s + 1) * BLOCKS_A_STAGE]
        stages.append(PipelineStage(part, s, count, torch.device("cpu")))
        if placement == "v":  # torch greets a neighbour on the same rank, which gloo refuses
            stages[-1]._get_init_p2p_neighbors_ops = list
    pipeline = kind(stages if each > 1 else stages[0], options.microbatches, loss_fn=F.mse_loss)
    if name == "1f1b":
        name_actions(stages)
    x = inputs(options, options.microbatches)
    optimizer = torch.optim.SGD([p for stage in stages for p in stage.submod.parameters()], lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        dist.barrier()
        pipeline.step(*([x] if stages[0].is_first else []),
                      **({"target": x} if any(stage.is_last for stage in stages) else {}))
        optimizer.step()

    for _ in range(2):
        step()
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=options.steps),
                 record_shapes=True,
                 on_trace_ready=lambda p: p.export_chrome_trace(f"{folder}/rank{rank}.json.gz")) as profiler:
        for _ in range(1 + options.steps):
            step()
            profiler.step()
    if rank == 0:
        rows = [single_row(name, r, options) for r in range(options.ranks)] if each == 1 else [
            [str(action) for action in pipeline.pipeline_order[r] if action is not None] for r in range(options.ranks)]
        (folder / "schedule.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    dist.destroy_process_group()


def write_inputs(options, out: Path) -> None:
    """The model as a table of layers, and a cluster whose links are as fast as nothing."""
    forward, of_input, of_weight = block_times(options)
    saved = 34 * options.hidden * options.sequence * options.samples
    sent = 4 * options.hidden * options.sequence * options.samples
    head = "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes," \
           "weight_saved_bytes,temporary_bytes\n"
    count = 2 * options.ranks * BLOCKS_A_STAGE
    rows = [f"block{b},{forward:.4f},{of_input:.4f},{of_weight:.4f},{sent},{48 * options.hidden**2},{saved},0,0\n"
            for b in range(count)]
    (out / "blocks.csv").write_text(head + "".join(rows))
    (out / "half.csv").write_text(head + "".join(rows[:count // 2]))
    pairs = ", ".join(f"[{a}, {b}]" for b in range(options.ranks) for a in range(b))
    (out / "cluster.yaml").write_text(CLUSTER.format(ranks=options.ranks, pairs=pairs))


CLUSTER = """version: 1
name: loopback
notes: ["times are those of blocks.csv; the link is assumed"]
device_kinds:
  x86_core:
    type: cpu
    memory: 4096 MiB
    memory_bandwidth: 10 GB/s
    peak: {{fp32: 50 GFLOP/s}}
    gemm_efficiency: {{fp32: [[0.001 GFLOP, 1]]}}
devices: [{{kind: x86_core, count: {ranks}}}]
links:
  - {{name: socket, between: [{pairs}], bandwidth: 2 GB/s, latency: 100 us, duplex: full}}
routes:
  - {{over: socket}}
"""

CONFIG = """version: 1
model: {model}
cluster: cluster.yaml
cases: {{devices: [{ranks}], microbatches: [{microbatches}]}}
plan: {{schedule: {name}/schedule.csv, cuts: [{cuts}]}}
baselines: []
simulation: {{launch_overhead: 0 us}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--sequence", type=int, default=32)
    parser.add_argument("--samples", type=int, default=1, help="a microbatch")
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    write_inputs(options, options.out)
    for name in options.schedules.split(","):
        folder = options.out / name
        folder.mkdir(exist_ok=True)
        (folder / "meeting").unlink(missing_ok=True)
        multiprocessing.spawn(run, (options, name, folder.resolve()), nprocs=options.ranks)
        (folder / "meeting").unlink(missing_ok=True)
        stages = options.ranks * SCHEDULES[name][1]
        cuts = ", ".join(str(BLOCKS_A_STAGE * s - 1) for s in range(1, stages))
        (options.out / f"{name}.yaml").write_text(CONFIG.format(
            name=name, model="blocks.csv" if SCHEDULES[name][1] > 1 else "half.csv", ranks=options.ranks,
            microbatches=options.microbatches, cuts=cuts))
        print(f"{name}: {folder}", flush=True)


if __name__ == "__main__":
    main()
