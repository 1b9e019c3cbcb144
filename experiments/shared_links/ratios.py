#!/usr/bin/env python3
"""The simulated step of every planned one over that of the best baseline that fits, from results of this study.

    python3 ratios.py FOLDER... > ratios.csv

FOLDERs are results of pfeife-exp, finished or not.

A line a case; the summary goes to standard error. `by_estimate` is the plan that the estimate alone picks.
"""
import csv
import json
import statistics
import sys
from pathlib import Path


def line_of(case: dict) -> dict:
    planned, *baselines = case["plans"]
    fitting = [plan for plan in baselines if plan["feasible"]]
    best = min(fitting, key=lambda plan: plan["simulate_ms"], default=None)
    estimate = next((choice for choice in case["choices"] if choice["by"] == "estimate"), None)

    def over_best(time):
        return f"{time / best['simulate_ms']:.4f}" if best and time else ""

    return {
        "cluster": Path(case["cluster"]).stem,
        "model": Path(case["model"]).stem,
        "devices": planned["devices"],
        "planned": planned["family"] + f", V={planned['stages_per_rank']}" if planned["feasible"] else "nothing fits",
        "simulated_ms": planned["simulate_ms"] or "",
        "best_baseline": best["plan"] if best else "none fits",
        "baseline_ms": best["simulate_ms"] if best else "",
        "ratio": over_best(planned["simulate_ms"]),
        "ratio_by_estimate": over_best(estimate and estimate["simulate_ms"]),
        "over_bound": f"{planned['simulate_gap_fraction']:.4f}" if planned["simulate_gap_fraction"] is not None else "",
    }


def main() -> int:
    records = [path for folder in sys.argv[1:] for path in sorted(Path(folder).glob("*/case.json"))]
    lines = [line_of(json.loads(path.read_text())) for path in records]
    if not lines:
        sys.exit("no cases; name folders of results")
    table = csv.DictWriter(sys.stdout, lines[0].keys(), lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    fitting = [line for line in lines if line["simulated_ms"]]
    compared = [line for line in fitting if line["ratio"]]
    slower = [line for line in compared if float(line["ratio"]) > 1]
    by_estimate = [line for line in compared if float(line["ratio_by_estimate"]) > 1]
    print(f"{len(lines)} cases; nothing fits in {len(lines) - len(fitting)}; of the others no baseline fits in "
          f"{len(fitting) - len(compared)}; slower than a baseline: {len(slower)} of {len(compared)}, by the estimate's "
          f"choice {len(by_estimate)}", file=sys.stderr)
    for name in ("ratio", "over_bound"):
        values = [float(line[name]) for line in fitting if line[name]]
        if values:
            print(f"{name}: median {statistics.median(values):.3f}, most {max(values):.3f}", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
