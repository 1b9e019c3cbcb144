"""One of the two processes that run torch.distributed.pipelining, and pfeife.Pipeline; told by versus_torch.py, on standard
input, what to do.

A line in is a request as JSON, a line out its answer: {"steps": [seconds]} for a measurement, {"difference": x} for the
comparison of gradients. Between requests the process waits and uses no processor.
"""

import json
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from stack import MICROBATCHES, SIZES, build

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe, "interleaved_1f1b": ScheduleInterleaved1F1B}


def stages_of(module: nn.Module, rank: int, count: int) -> list[PipelineStage]:
    """The stages of this rank: layers in `count` equal runs, stage s on rank s mod 2."""
    each = len(module.layers) // count
    parts = [nn.Sequential(*module.layers[s * each:(s + 1) * each]) for s in range(count)]
    return [PipelineStage(parts[s], s, count, torch.device("cpu")) for s in range(rank, count, 2)]


def make_schedule(request: dict, stages: list[PipelineStage]):
    loss = F.mse_loss
    if "csv" in request:
        schedule = _PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=loss)
        schedule._load_csv(request["csv"], format="compute_comms")
        return schedule
    kind = SCHEDULES[request["schedule"]]
    return kind(stages if request["stages"] > 2 else stages[0], MICROBATCHES, loss_fn=loss)


class TorchRuntime:
    """torch.distributed.pipelining on a module cut into stages."""

    def __init__(self, request: dict, module: nn.Module, rank: int):
        self.stages = stages_of(module, rank, request["stages"])
        self.schedule = make_schedule(request, self.stages)

    def parameters(self) -> list[nn.Parameter]:
        return [parameter for stage in self.stages for parameter in stage.submod.parameters()]

    def step(self, x: torch.Tensor, target: torch.Tensor) -> None:
        inputs = (x,) if self.stages[0].is_first else ()
        last = any(stage.is_last for stage in self.stages)
        self.schedule.step(*inputs, **({"target": target} if last else {}))


def pipeline(request: dict, module: nn.Module, x: torch.Tensor, target: torch.Tensor):
    """pfeife.Pipeline with the same cuts and schedule."""
    import pfeife

    how = dict(devices=2, microbatches=MICROBATCHES, engines=["estimate"], baselines=[], cuts_at="blocks")
    cluster = pfeife.uniform_cluster(2, peak={"fp32": "100 GFLOP/s"}, memory_bandwidth="10 GB/s")
    capture = pfeife.capture(module, x, target, microbatches=MICROBATCHES)
    names = [name for name, _ in pfeife.Pricer(pfeife.model(capture.archive), cluster, **how).layers]
    each, count = len(module.layers) // request["stages"], request["stages"]
    cuts = [names.index(f"add_{2 * each * s - 1}") for s in range(1, count)]  # a layer has two additions
    family = dict(families=[request["schedule"]], stages_per_rank=count // 2, iterations=1, recompute="none")
    plan = pfeife.plan(capture, cluster=cluster, cuts=cuts, **family, **how)
    assert len(plan.rank_of_stage) == count and plan.cuts == cuts, plan
    return pfeife.Pipeline(capture, plan)


def runner(request: dict, module: nn.Module, rank: int, x: torch.Tensor, target: torch.Tensor):
    """What has parameters() of this rank, and step(x, target)."""
    return pipeline(request, module, x, target) if request["side"] == "pipeline" else TorchRuntime(request, module, rank)


def run_step(runner, x: torch.Tensor, target: torch.Tensor) -> tuple[float, float]:
    """One step; when it began and ended on this rank, on the clock that both ranks share."""
    for parameter in runner.parameters():
        parameter.grad = None
    dist.barrier()
    start = time.monotonic()
    runner.step(x, target)
    return start, time.monotonic()


def measure(request: dict, rank: int) -> dict:
    module, inputs = build(request["hidden"])
    x, target = (torch.cat([inputs[name]] * MICROBATCHES) for name in ("x", "target"))
    running = runner(request, module, rank, x, target)
    times = []
    for _ in range(request["warm"] + request["steps"]):
        own = torch.tensor(run_step(running, x, target), dtype=torch.float64)
        both = [torch.zeros_like(own) for _ in range(2)]
        dist.all_gather(both, own)
        times.append(max(b[1].item() for b in both) - min(b[0].item() for b in both))
    return {"steps": times[request["warm"]:]}


def largest_difference(parameters: dict[str, nn.Parameter], expected: dict[str, torch.Tensor]) -> float:
    return max(((p.grad - expected[n]).norm() / expected[n].norm()).item() for n, p in parameters.items())


def compare(request: dict, rank: int) -> dict:
    """Gradients of our schedule run by torch, or by pfeife.Pipeline, in float64, against those of the module run on one microbatch after
    another: the largest difference of a tensor over its norm."""
    torch.manual_seed(1)
    module = build(request["hidden"])[0].double()
    _, sequence, samples, _ = SIZES[request["hidden"]]
    shape = MICROBATCHES * samples, sequence, request["hidden"]
    x, target = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    for part, wanted in zip(x.chunk(MICROBATCHES), target.chunk(MICROBATCHES)):
        (module(part, wanted) / MICROBATCHES).backward()
    expected = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    running = runner(request, module, rank, x, target)
    run_step(running, x, target)
    own = {names[id(parameter)]: parameter for parameter in running.parameters()}
    return {"difference": largest_difference(own, expected), "tensors": len(own)}


def main() -> None:
    rank, meeting = int(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    answers = {"measure": measure, "compare": compare}
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(answers[request["what"]](request, rank)), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
