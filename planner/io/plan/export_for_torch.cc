#include <string_view>

#include "planner/io/plan/plan_writers.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/plan/split_points.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Python, complete: run_in_torch.py of a plan's folder. The same for every plan.
std::string_view torch_script() {
  return R"script(#!/usr/bin/env python3
"""Runs one step of the plan in this folder with torch.distributed.pipelining (torch 2.11).

    torchrun --nproc-per-node RANKS run_in_torch.py MODEL.py:FUNCTION [--prefix net.] [--check]

FUNCTION(batch) returns (module, x, loss_fn, target): the module without its loss, a batch of inputs, loss_fn(output, target)
and the targets. torch's pipeline() takes no input that only a later stage reads, as a loss inside would. Where the module
that was exported holds this one as self.net, the prefix of its paths is "net.".
"""
import argparse
import copy
import importlib.util
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.pipelining import SplitPoint, pipeline
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime


def function_of(reference):
    path, _, name = reference.rpartition(":")
    sys.path.insert(0, str(Path(path).resolve().parent))  # its neighbours, as where it was exported
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    source = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = source
    spec.loader.exec_module(source)
    return getattr(source, name)


def check(module, x, loss_fn, target, stages, losses):
    """Losses and gradients against the unsplit module on the same batch."""
    loss = loss_fn(module(x), target)
    loss.backward()
    if losses:
        mean = sum(losses) / len(losses)
        assert abs(mean - loss.item()) <= 1e-4 * abs(loss.item()), (mean, loss.item())
    unsplit = dict(module.named_parameters())
    for stage in stages:
        for name, parameter in stage.submod.named_parameters():
            expected = unsplit[name].grad
            difference = (parameter.grad - expected).abs().max() / expected.abs().max()
            assert difference < 1e-3, (name, difference)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="MODEL.py:FUNCTION")
    parser.add_argument("--prefix", default="", help="of the module's paths in the exported one")
    parser.add_argument("--batch", type=int, help="samples (default: four a microbatch)")
    parser.add_argument("--check", action="store_true", help="compare losses and gradients with the unsplit module")
    options = parser.parse_args()
    folder = Path(__file__).resolve().parent
    plan = json.loads((folder / "split_points.json").read_text())
    if plan["split_spec"] is None or plan["schedule"] is None:
        raise SystemExit(plan["schedule_why_not"] or "a cut that torch cannot make; see why_not in split_points.json")

    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    device = torch.device("cuda") if cuda else torch.device("cpu")
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, microbatches = dist.get_rank(), plan["microbatches"]
    torch.manual_seed(0)  # the same weights and batch on every rank
    module, x, loss_fn, target = function_of(options.function)(options.batch or 4 * microbatches)
    whole = copy.deepcopy(module).to(device)
    x, target, losses = x.to(device), target.to(device), []

    def noted(output, wanted):
        loss = loss_fn(output, wanted)
        losses.append(loss.item())
        return loss

    spec = {path.removeprefix(options.prefix): SplitPoint[point] for path, point in plan["split_spec"].items()}
    pipe = pipeline(module, (x.chunk(microbatches)[0].cpu(),), split_spec=spec)
    stages = [pipe.build_stage(s, device) for s, r in enumerate(plan["rank_of_stage"]) if r == rank]
    if any(a == b for a, b in zip(plan["rank_of_stage"], plan["rank_of_stage"][1:])):
        for stage in stages:  # torch greets a neighbour on the same rank, which gloo refuses
            stage._get_init_p2p_neighbors_ops = list
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=noted)
    schedule._load_csv(folder / plan["schedule"], format="compute_comms")
    schedule.step(*([x] if stages[0].is_first else []), **({"target": target} if stages[-1].is_last else {}))
    if options.check:
        check(whole, x, loss_fn, target, stages, losses)
    if losses:
        print(f"loss {sum(losses) / len(losses):.6g}" + (", as unsplit" if options.check else ""), flush=True)
    dist.destroy_process_group()


main()
)script";
}

}  // namespace

Exported export_for_torch(const PlanToExport& planned) {
  const char* const name = "schedule_torch.csv";
  std::string why_not = torch_refusal(planned.layers, planned.plan), schedule;
  try {
    schedule = write_schedule(planned.plan.schedule, Reader::Torch);
  } catch (const ConfigError& error) {
    if (why_not.empty()) why_not = error.what();
  }
  const bool runs = why_not.empty();
  Exported exported{{{"split_points.json",
                      split_points_text(planned.layers, planned.plan, runs ? name : "", why_not)}}};
  if (!runs) exported.lost.push_back(why_not);
  bool whole = runs;
  for (const SplitPoint& point : split_points(planned.layers, planned.plan.partition)) {
    if (point.why_not.empty()) continue;
    exported.lost.push_back("a cut: " + point.why_not);
    whole = false;
  }
  if (whole && planned.plan.training.mode == Mode::Forward) {
    exported.lost.push_back("run_in_torch.py, which trains: the plan runs forward only");
    whole = false;
  }
  if (runs) exported.files.push_back({name, schedule});
  if (whole) exported.files.push_back({"run_in_torch.py", std::string(torch_script())});
  return exported;
}

}  // namespace pfeife
