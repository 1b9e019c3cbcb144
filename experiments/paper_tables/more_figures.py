#!/usr/bin/env python3
"""Figures beyond the paper's: bubble over the memory limit, and samples/s over devices and over microbatches.

    python3 experiments/paper_tables/more_figures.py    # into figures/bubble_over_memory.svg, scaling_*.svg

Needs build/release (or --program). Finished cases are kept in results/paper_tables.
"""
import argparse
import sys
from pathlib import Path

from chart import Line, line_chart
from runs import HERE, Runs

GIB = 2**30


def bubble_over_memory(runs: Runs) -> None:
    """The zero-bubble paper's first setting: 1.5 B parameters, 8 devices, 24 microbatches."""
    limits = [16, 20, 24, 28, 32, 40, 48, 56, 64, 76]
    lines = {}
    ideal = None
    for limit in limits:
        plans = runs.cases("bubble_over_memory.yaml", f"bubble_{limit}",
                           [f"cluster={{file: ../../configs/clusters/a100_sxm4_80gb_x8.yaml, set: {{device_kinds.a100_sxm4_80gb.memory: {limit} GiB}}}}"])
        for (_, name), plan in plans.items():
            if plan["feasible"]:
                lines.setdefault(name, []).append((limit, 100 * plan["bubble_fraction"]))
            if name == "planned" and plan["lower_bound_ms"]:
                ideal = plan["estimate_ms"] * (1 - plan["bubble_fraction"])
                lines.setdefault("bound", []).append((limit, 100 * (1 - ideal / plan["lower_bound_ms"])))
    shown = [Line(name, points, dots=name != "bound", dashed=name == "bound") for name, points in lines.items()]
    (HERE / "figures/bubble_over_memory.svg").write_text(line_chart(
        "1.5 B parameters, 8 devices, 24 microbatches (estimated)", "memory of a device, GiB", "bubble, %", shown))


def scaling(runs: Runs, name: str, cells: list[tuple[int, int]], axis: int, x_name: str) -> None:
    lines, bound = {}, []
    for devices, microbatches in cells:
        plans = runs.cases("scaling.yaml", f"scaling_{devices}_{microbatches}", [f"cases={{devices: [{devices}], microbatches: [{microbatches}]}}"])
        for (cell, plan_name), plan in plans.items():
            line = lines.setdefault(plan_name, Line(plan_name, [], dots=True))
            if plan["samples_per_s"]:
                point = (cell[axis], plan["samples_per_s"])
                line.points.append(point)
                if not plan["feasible"]:
                    line.hollow.append(point)
            if plan_name == "planned" and plan["lower_bound_ms"]:
                bound.append((cell[axis], microbatches * plan["microbatch_size"] * 1000 / plan["lower_bound_ms"]))
    shown = [*lines.values(), Line("bound", bound, dashed=True)]
    (HERE / f"figures/{name}.svg").write_text(line_chart(
        "ViT-g/14 on A100-40GB, 24 images a microbatch (simulated; hollow: does not fit)", x_name, "images/s", shown,
        [cell[axis] for cell in cells]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=HERE.parents[1] / "build/release/experiments/pfeife-exp")
    parser.add_argument("--out", type=Path, default=Path("results/paper_tables"))
    options = parser.parse_args()
    runs = Runs(options.program, options.out)
    bubble_over_memory(runs)
    scaling(runs, "scaling_devices", [(d, 16) for d in (2, 3, 4, 6, 8)], 0, "devices (16 microbatches)")
    scaling(runs, "scaling_microbatches", [(8, n) for n in (8, 16, 24, 32)], 1, "microbatches (8 devices)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
