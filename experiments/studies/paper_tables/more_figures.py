#!/usr/bin/env python3
"""Figures beyond the paper's, each an SVG beside the CSV file of what it shows.

    python3 experiments/studies/paper_tables/more_figures.py                  # all, into figures/
    python3 experiments/studies/paper_tables/more_figures.py phase_diagram    # one
    python3 experiments/studies/paper_tables/more_figures.py --check          # computes nothing; fails if an SVG is not what its CSV says

Needs build/release (or --program), performance_profile the program of the study planner_comparison, too. Finished cases are kept in
results/paper_tables.
"""
import argparse
import csv
import subprocess
import sys
from pathlib import Path

from chart import Cell, Line, grid_chart, line_chart
from runs import HERE, Runs

COMPARISON = HERE.parents[2] / "tests/benchmarks/planner_comparison"


def bubble_rows(runs: Runs) -> list[dict]:
    """The zero-bubble paper's first setting."""
    rows = []
    for limit in [16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 76]:
        plans = runs.cases("bubble_over_memory.yaml", f"bubble_{limit}",
                           [f"cluster={{file: ../../../configs/clusters/a100_sxm4_80gb_x8.yaml, set: {{device_kinds.a100_sxm4_80gb.memory: {limit} GiB}}}}"])
        for (_, name), plan in plans.items():
            if plan["feasible"]:
                rows.append({"schedule": name, "memory_gib": limit, "bubble_percent": f"{100 * plan['bubble_fraction']:.2f}"})
            if name == "planned" and plan["lower_bound_ms"]:
                work = plan["estimate_ms"] * (1 - plan["bubble_fraction"])
                rows.append({"schedule": "bound", "memory_gib": limit, "bubble_percent": f"{100 * (1 - work / plan['lower_bound_ms']):.2f}"})
    # What is proven with more memory holds with less.
    bounds, most = [row for row in rows if row["schedule"] == "bound"], 0.0
    for row in reversed(bounds):
        most = max(most, float(row["bubble_percent"]))
        row["bubble_percent"] = f"{most:.2f}"
    return rows


def lines_of(rows: list[dict], name: str, x: str, y: str) -> list[Line]:
    lines = {}
    for row in rows:
        line = lines.setdefault(row[name], Line(row[name], [], dots=row[name] != "bound", dashed=row[name] == "bound", ours=row[name] in ("planned", "bound")))
        point = (float(row[x]), float(row[y]))
        line.points.append(point)
        if row.get("fits") == "0":
            line.hollow.append(point)
    return sorted(lines.values(), key=lambda line: line.points[-1][1], reverse=True)


def bubble_figure(rows: list[dict]) -> str:
    return line_chart("1.5 B parameters, 8 devices, 24 microbatches (estimated)", "memory of a device, GiB (a line begins where a schedule fits)",
                      "bubble, %", lines_of(rows, "schedule", "memory_gib", "bubble_percent"))


def scaling_rows(runs: Runs, cells: list[tuple[int, int]]) -> list[dict]:
    rows = []
    for devices, microbatches in cells:
        plans = runs.cases("scaling.yaml", f"scaling_{devices}_{microbatches}", [f"cases={{devices: [{devices}], microbatches: [{microbatches}]}}"])
        for (_, name), plan in plans.items():
            found = [(name, plan["samples_per_s"], plan["feasible"])]
            if name == "planned" and plan["lower_bound_ms"]:
                found.append(("bound", microbatches * plan["microbatch_size"] * 1000 / plan["lower_bound_ms"], 1))
            rows += [{"schedule": schedule, "devices": devices, "microbatches": microbatches, "images_per_s": f"{rate:.2f}", "fits": fits}
                     for schedule, rate, fits in found if rate]
    return rows


def scaling_figure(rows: list[dict], axis: str, words: str) -> str:
    return line_chart("ViT-g/14 on A100-40GB, 24 images a microbatch (simulated; hollow: does not fit)", words, "images/s",
                      lines_of(rows, "schedule", axis, "images_per_s"), sorted({float(row[axis]) for row in rows}),
                      (0, 1.05 * max(float(row["images_per_s"]) for row in rows)))


# Axes of the phase diagram. Memory counts forwards of a stage (0.6 GB) that a device keeps; 60 MB are for what is held besides.
FORWARDS = {5: "3.06 GB", 8: "4.86 GB", 11: "6.66 GB", 16: "9.66 GB", 64: "38.46 GB"}
# Transfer of a boundary (1 MB) over the forward of a stage (6 ms).
RATIOS = {0.01: "16.667 GB/s", 0.1: "1.6667 GB/s", 0.25: "666.67 MB/s", 0.5: "333.33 MB/s", 1: "166.67 MB/s", 2: "83.333 MB/s"}
MICROBATCHES = [8, 16, 32, 64]


def phase_rows(runs: Runs) -> list[dict]:
    memory, bandwidth = "cluster.device_kinds.device.memory", "cluster.links.port.bandwidth"
    folder = runs.out / "phase_diagram"
    runs.say("phase_diagram")
    runs.call("phase_diagram.yaml", ["--out", str(folder), "--quiet"], [
        f"cases={{devices: [8], microbatches: {MICROBATCHES}, {memory}: [{', '.join(FORWARDS.values())}], {bandwidth}: [{', '.join(RATIOS.values())}]}}"])
    cells = {}
    with open(folder / "results.csv") as file:
        for row in csv.DictReader(file):
            cell = cells.setdefault((int(row["microbatches"]), row[memory], row[bandwidth]), {})
            if row["feasible"] == "1":
                cell[row["plan"]] = (float(row["simulate_ms"]), row["family"])
    rows = []
    for n in MICROBATCHES:
        for forwards, limit in FORWARDS.items():
            for ratio, rate in RATIOS.items():
                found = dict(cells[n, limit, rate])
                planned = found.pop("planned", None)
                best = min(found, key=lambda name: found[name][0]) if found else ""
                rows.append({"microbatches": n, "forwards_kept": forwards, "transfer_over_forward": ratio, "best_family": best,
                             "best_ms": f"{found[best][0]:.3f}" if best else "", "planned_family": planned[1] if planned else "",
                             "planned_ms": f"{planned[0]:.3f}" if planned else ""})
    return rows


ALONE = "only the planner has a plan"


def phase_cell(row: dict) -> Cell:
    if not row["planned_ms"]:
        return Cell("", "none")
    if not row["best_family"]:
        return Cell(ALONE, "")
    return Cell(row["best_family"], f"{round(100 * (float(row['best_ms']) / float(row['planned_ms']) - 1))}")


def phase_figure(rows: list[dict]) -> str:
    panels = []
    for n in MICROBATCHES:
        cells = [row for row in rows if int(row["microbatches"]) == n]
        panels.append((f"{n} microbatches", [[phase_cell(row) for row in cells if int(row["forwards_kept"]) == forwards] for forwards in FORWARDS]))
    return grid_chart("The fastest family on eight devices, and what the planner adds (simulated)",
                      "transfer / forward of a stage", "memory, forwards", [f"{ratio:g}" for ratio in RATIOS], [str(forwards) for forwards in FORWARDS],
                      panels, "Figures: by how many % the best family's step is longer than the planned one's. 1F1B keeps 8 forwards.")


PLANNERS = ["ours", "reference", "reference_memory", "min-max_1F1B", "by_time_1F1B", "by_layers_1F1B"]


def profile_rows(runs: Runs) -> list[dict]:
    """What the study planner_comparison has written; it is run if it has not."""
    written = runs.out.parent / "planner_comparison/planner_comparison.csv"
    if not written.is_file() or sum(1 for _ in open(written)) < 101:
        runs.say("planner_comparison, a hundred problems")
        program = runs.program.parents[1] / "tests/benchmarks/planner_comparison/study_planner_comparison"
        subprocess.run([program, HERE.parents[2] / "configs", written.parent, "20"], check=True)
    with open(written) as file:
        return [{**{key: row[key] for key in ("model", "cluster", "devices", "microbatches", "memory_share")},
                 **{f"{name}_ms": row[f"{name}_ms"] for name in [*PLANNERS, "bound"]}} for row in csv.DictReader(file)]


def profile_figure(rows: list[dict]) -> str:
    """Dolan and More 2002: the share of problems on which a planner is within a factor of the best."""
    names = {"ours": "ours", "reference": "reference", "reference_memory": "reference, its memory", "min-max_1F1B": "min-max cuts, 1F1B",
             "by_time_1F1B": "cuts by time, 1F1B", "by_layers_1F1B": "equal layers, 1F1B"}
    solved = [[float(row[f"{name}_ms"]) if row[f"{name}_ms"] else None for name in PLANNERS] for row in rows]
    solved = [times for times in solved if any(times)]
    last = 2.2
    lines = []
    for number, name in enumerate(PLANNERS):
        ratios = sorted(times[number] / min(time for time in times if time) for times in solved if times[number])
        points = [(1.0, 100 * sum(ratio <= 1 for ratio in ratios) / len(solved))]
        points += [(ratio, 100 * (place + 1) / len(solved)) for place, ratio in enumerate(ratios) if 1 < ratio <= last]
        lines.append(Line(names[name], [*points, (last, points[-1][1])], steps=True, ours=name == "ours"))
    return line_chart(f"{len(solved)} problems that have a plan: within which factor of the best (estimated)", "step / best planner's step",
                      "problems, %", lines, y_range=(0, 105))


DEVICES = [(d, 16) for d in (2, 3, 4, 6, 8)]
BATCHES = [(8, n) for n in (8, 16, 24, 32, 64)]
FIGURES = {  # name: folder, rows, drawing
    "phase_diagram": (HERE / "figures", phase_rows, phase_figure),
    "bubble_over_memory": (HERE / "figures", bubble_rows, bubble_figure),
    "performance_profile": (COMPARISON, profile_rows, profile_figure),
    "scaling_devices": (HERE / "figures", lambda runs: scaling_rows(runs, DEVICES), lambda rows: scaling_figure(rows, "devices", "devices (16 microbatches)")),
    "scaling_microbatches": (HERE / "figures", lambda runs: scaling_rows(runs, BATCHES), lambda rows: scaling_figure(rows, "microbatches", "microbatches (8 devices)")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figures", nargs="*", help="of: " + ", ".join(FIGURES) + " (default: all)")
    parser.add_argument("--program", type=Path, default=HERE.parents[2] / "build/release/experiments/pfeife-exp")
    parser.add_argument("--out", type=Path, default=Path("results/paper_tables"))
    parser.add_argument("--check", action="store_true", help="compute and write nothing; fail if an SVG is not what its CSV file says")
    options = parser.parse_args()
    if unknown := set(options.figures) - set(FIGURES):
        parser.error(f"unknown figure {unknown.pop()}; use {', '.join(FIGURES)}")
    runs = Runs(options.program, options.out)
    wrong = 0
    for name in options.figures or FIGURES:
        folder, compute, draw = FIGURES[name]
        data, drawing = folder / f"{name}.csv", folder / f"{name}.svg"
        if not options.check:
            rows = compute(runs)
            with open(data, "w") as out:
                writer = csv.DictWriter(out, rows[0], lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        with open(data) as file:
            svg = draw(list(csv.DictReader(file)))
        if options.check and drawing.read_text() != svg:
            print(f"{drawing.name} is not what {data.name} says; run more_figures.py {name}", file=sys.stderr)
            wrong += 1
        if not options.check:
            drawing.write_text(svg)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
