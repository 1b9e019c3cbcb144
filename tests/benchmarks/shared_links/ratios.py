#!/usr/bin/env python3
"""The simulated step of every planned one over that of the best baseline that fits, from results of this study.

    python3 ratios.py FOLDER... [--keep OLD.csv] > ratios.csv

FOLDERs are results of pfeife-exp, finished or not; OLD.csv has the lines of cases that none of them has.

A line a case; the summary goes to standard error. `by_estimate` is the plan that the estimate alone picks; `over_bound` is of
the simulated step, `estimate_over_bound` of the same plan's estimate.
"""
import csv
import json
import statistics
import sys
from pathlib import Path


CLUSTERS = ["rtx4090_4x2_ethernet", "3090_x8", "a100_4x8", "h100_sxm_x8", "laptop_8_cores"]


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
        "over_bound": fraction(planned["simulate_gap_fraction"]),
        "estimate_over_bound": fraction(planned["gap_fraction"]),
    }


def fraction(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def place(line: dict) -> tuple:
    return CLUSTERS.index(line["cluster"]), line["model"], int(line["devices"])


def kept(old: Path, lines: list[dict]) -> list[dict]:
    known = {place(line) for line in lines}
    return [{**line, "estimate_over_bound": line.get("estimate_over_bound", "")} for line in csv.DictReader(old.open()) if place(line) not in known]


def print_clusters(lines: list[dict]) -> None:
    def figures(some: list[dict], name: str) -> list[float]:
        return [float(line[name]) for line in some if line[name]]

    def percent(values: list[float], of=statistics.median) -> str:
        return f"{100 * of(values):.1f}" if values else ""

    print("\n| cluster | cases | nothing fits | no baseline fits | compared | plan slower | estimate's choice slower | median ratio "
          "| largest ratio | above the bound, median % | most % | four devices, median % | eight, median % |\n" + "|---" * 13 + "|",
          file=sys.stderr)
    for cluster in [*CLUSTERS, "all"]:
        some = [line for line in lines if cluster in ("all", line["cluster"])]
        ratios, by_estimate = figures(some, "ratio"), figures(some, "ratio_by_estimate")
        over = [figures([line for line in some if devices in (0, int(line["devices"]))], "over_bound") for devices in (0, 4, 8)]
        fits = sum(bool(line["simulated_ms"]) for line in some)
        print("| " + " | ".join(map(str, [
            cluster, len(some), len(some) - fits, fits - len(ratios), len(ratios), sum(r > 1 for r in ratios),
            sum(r > 1 for r in by_estimate), f"{statistics.median(ratios):.3f}" if ratios else "",
            f"{max(ratios):.3f}" if ratios else "", percent(over[0]), percent(over[0], max), percent(over[1]), percent(over[2])])) + " |",
            file=sys.stderr)


def main() -> int:
    arguments = sys.argv[1:]
    old = Path(arguments.pop(arguments.index("--keep") + 1)) if "--keep" in arguments else None
    folders = [argument for argument in arguments if argument != "--keep"]
    records = [path for folder in folders for path in sorted(Path(folder).glob("*/case.json"))]
    lines = [line_of(json.loads(path.read_text())) for path in records]
    if old:
        lines += kept(old, lines)
    lines.sort(key=place)
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
    for name in ("ratio", "over_bound", "estimate_over_bound"):
        values = [float(line[name]) for line in fitting if line[name]]
        if values:
            print(f"{name}: median {statistics.median(values):.3f}, most {max(values):.3f}", file=sys.stderr)
    print_clusters(lines)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
