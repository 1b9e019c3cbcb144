#!/usr/bin/env python3
"""Figures beyond the paper's: what they need of results.csv, and a drawing of it by `pfeife-exp figure`.

    python3 experiments/studies/paper_tables/more_figures.py                  # all, into figures/
    python3 experiments/studies/paper_tables/more_figures.py phase_diagram    # one table and its drawings
    python3 experiments/studies/paper_tables/more_figures.py --check          # computes nothing; fails if a drawing is not what its CSV file says

Needs build/release (or --program), performance_profile the program of the study planner_comparison, too. Finished cases are kept in
results/paper_tables.
"""
import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

from runs import HERE, Runs

COMPARISON = HERE.parents[2] / "tests/benchmarks/planner_comparison"
# What `pfeife-exp figure` needs of any results.csv, and of those that have a step.
NAMES, RATE = ["case", "plan", "family", "feasible"], ["samples_per_s", "microbatches", "microbatch_size"]


def swept(runs: Runs, config: str, name: str, cases: str) -> list[dict]:
    """results.csv of a config over these cases; case by number, not by the swept keys, which have columns of their own."""
    runs.say(name)
    runs.call(config, ["--out", str(runs.out / name), "--quiet"], [f"cases={{{cases}}}"])
    with open(runs.out / name / "results.csv") as file:
        rows = list(csv.DictReader(file))
    numbers = {case: number for number, case in enumerate(dict.fromkeys(row["case"] for row in rows))}
    return [row | {"case": numbers[row["case"]]} for row in rows]


def bubble_rows(runs: Runs) -> list[dict]:
    """The zero-bubble paper's first setting."""
    limits = ", ".join(f"{limit} GiB" for limit in (16, 20, 24, 28, 32, 36, 40, 48, 56, 64, 76))
    memory = "cluster.device_kinds.a100_sxm4_80gb.memory"
    rows = swept(runs, "bubble_over_memory.yaml", "bubble_over_memory", f"devices: [8], microbatches: [24], {memory}: [{limits}]")
    return [row | {"memory": row[memory]} for row in rows if row["samples_per_s"]]


# Axes of the phase diagram. Memory counts forwards of a stage (0.6 GB) that a device keeps; 60 MB are for what is held besides.
FORWARDS = {"3.06 GB": 5, "4.86 GB": 8, "6.66 GB": 11, "9.66 GB": 16, "38.46 GB": 64}
# Transfer of a boundary (1 MB) over the forward of a stage (6 ms).
RATIOS = {"16.667 GB/s": 0.01, "1.6667 GB/s": 0.1, "666.67 MB/s": 0.25, "333.33 MB/s": 0.5, "166.67 MB/s": 1, "83.333 MB/s": 2}


def phase_rows(runs: Runs) -> list[dict]:
    """The planned plan of each case, and of the baselines' families the fastest two that fit, of which a phase diagram tells."""
    memory, bandwidth = "cluster.device_kinds.device.memory", "cluster.links.port.bandwidth"
    rows = swept(runs, "phase_diagram.yaml", "phase_diagram",
                 f"devices: [8], microbatches: [8, 16, 32, 64], {memory}: [{', '.join(FORWARDS)}], {bandwidth}: [{', '.join(RATIOS)}]")
    kept = []
    for number in range(1 + rows[-1]["case"]):
        plans = [row for row in rows if row["case"] == number]
        baselines = sorted((row for row in plans if row["plan"] not in ("planned", "less_memory")),
                           key=lambda row: (row["feasible"] != "1", -float(row["samples_per_s"] or 0)))
        kept += [row | {"memory_in_forwards": FORWARDS[row[memory]], "transfer_over_forward": RATIOS[row[bandwidth]],
                        "of": "planner" if row["plan"] == "planned" else "families"}
                 for row in [plan for plan in plans if plan["plan"] == "planned"] + baselines[:2]]
    return kept


PLANNERS = {"ours": "planned", "reference": "reference", "reference_memory": "reference, its memory", "min-max_1F1B": "min-max cuts, 1F1B",
            "by_time_1F1B": "cuts by time, 1F1B", "by_layers_1F1B": "equal layers, 1F1B"}


def step_rows(runs: Runs) -> list[dict]:
    """What the study planner_comparison has written; it is run if it has not."""
    written = runs.out.parent / "planner_comparison/planner_comparison.csv"
    if not written.is_file() or sum(1 for _ in open(written)) < 101:
        runs.say("planner_comparison, a hundred problems")
        program = runs.program.parents[1] / "tests/benchmarks/planner_comparison/study_planner_comparison"
        subprocess.run([program, HERE.parents[2] / "configs", written.parent, "20"], check=True)
    with open(written) as file:
        return list(csv.DictReader(file))


def profile(rows: list[dict]) -> list[dict]:
    """Dolan and More 2002: the share of the problems that have a plan on which a planner is within a factor of the best, as rows of results.csv."""
    steps = [{name: float(row[f"{name}_ms"]) for name in PLANNERS if row[f"{name}_ms"]} for row in rows]
    factors = [{name: step / min(steps.values()) for name, step in steps.items()} for steps in steps if steps]
    return [{"case": "", "plan": words, "family": "" if words == "planned" else words, "feasible": 1, "samples_per_s": "", "step_over_best": f"{tenths / 20:g}",
             "problems_fraction": f"{sum(by_name.get(name, 9) <= tenths / 20 for by_name in factors) / len(factors):.4f}"}
            for name, words in PLANNERS.items() for tenths in range(20, 45)]


def scaling(cases: str, name: str):
    return lambda runs: swept(runs, "scaling.yaml", name, cases)


def over(axis: str) -> list[str]:
    return ["--x", axis, "--y", "samples_per_s", "--where", "feasible=1", "--title", "ViT-g/14 on A100-40GB, 24 images a microbatch"]


PHASES = ["--kind", "phase", "--x", "transfer_over_forward", "--y", "memory_in_forwards", "--facet", "microbatches"]
PAPERS = HERE / "figures"
# A table: its folder, its rows, the columns that are kept; its drawings: options of `pfeife-exp figure`.
FIGURES = {
    "phase_diagram": (PAPERS, phase_rows, [*NAMES, *RATE, "memory_in_forwards", "transfer_over_forward", "of"], {
        "phase_diagram": [*PHASES, "--where", "of=families", "--title", "The fastest family on eight devices"],
        "phase_diagram_planned": [*PHASES, "--title", "The same with the planned plans"]}),
    "bubble_over_memory": (PAPERS, bubble_rows, [*NAMES, *RATE, "estimate_ms", "bubble_fraction", "memory"], {
        "bubble_over_memory": ["--x", "memory", "--y", "bubble", "--where", "feasible=1", "--title", "1.5 B parameters, 8 devices, 24 microbatches"]}),
    "performance_profile": (COMPARISON, step_rows, ["model", "cluster", "devices", "microbatches", "memory_share", *(f"{name}_ms" for name in [*PLANNERS, "bound"])], {
        "performance_profile": ["--x", "step_over_best", "--y", "problems_fraction", "--no-title"]}),
    "scaling_devices": (PAPERS, scaling("devices: [2, 3, 4, 6, 8], microbatches: [16]", "scaling_devices"),
                        [*NAMES, *RATE, "devices", "simulate_ms", "lower_bound_ms"], {"scaling_devices": over("devices")}),
    "scaling_microbatches": (PAPERS, scaling("devices: [8], microbatches: [8, 16, 24, 32, 64]", "scaling_microbatches"),
                             [*NAMES, *RATE, "simulate_ms", "lower_bound_ms"], {"scaling_microbatches": over("microbatches")}),
}
DERIVED = {"performance_profile": profile}  # what is drawn of a table, where it is not the table


def write_rows(file: Path, rows: list[dict], columns: list[str]) -> None:
    with open(file, "w") as out:
        writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="of: " + ", ".join(FIGURES) + " (default: all)")
    parser.add_argument("--program", type=Path, default=HERE.parents[2] / "build/release/experiments/pfeife-exp")
    parser.add_argument("--out", type=Path, default=Path("results/paper_tables"))
    parser.add_argument("--check", action="store_true", help="compute and write nothing; fail if a drawing is not what its CSV file says")
    options = parser.parse_args()
    if unknown := set(options.tables) - set(FIGURES):
        parser.error(f"unknown table {unknown.pop()}; use {', '.join(FIGURES)}")
    runs = Runs(options.program, options.out)
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.tables or FIGURES:
            folder, compute, columns, drawings = FIGURES[name]
            table = folder / f"{name}.csv"
            if not options.check:
                write_rows(table, compute(runs), columns)
            if name in DERIVED:
                with open(table) as file:
                    rows = DERIVED[name](list(csv.DictReader(file)))
                table = Path(scratch) / table.name
                write_rows(table, rows, list(rows[0]))
            for drawing, arguments in drawings.items():
                kept, drawn = folder / f"{drawing}.svg", Path(scratch) / f"{drawing}.svg"
                runs.draw(table, drawn, arguments)
                if not options.check:
                    kept.write_text(drawn.read_text())
                elif kept.read_text() != drawn.read_text():
                    print(f"{kept.name} is not what {name}.csv says; run more_figures.py {name}", file=sys.stderr)
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
