#!/usr/bin/env python3
"""Bubble rates of the zero-bubble paper (Qi et al., ICLR 2024) with this project's schedules and estimator.

    python3 experiments/studies/schedule_tables/schedule_tables.py           # twelve settings, into this folder's tables.csv and tables.md
    python3 experiments/studies/schedule_tables/schedule_tables.py --check   # writes nothing; fails if tables.csv says otherwise

Needs build/release (or --program). Finished cases are kept in results/schedule_tables.
"""
import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEQUENCE = 1024  # tokens
# Column of the paper: our baseline, which figure of it.
SCHEDULES = {
    "bub_1F1B": ("1f1b", "estimate_ms"),
    "bub_1F1BI_published": ("interleaved", "estimate_ms"),
    "bub_ZBH1": ("zb_h1", "span_ms"),
    "bub_ZBH2": ("zb_h2", "span_ms"),
    "bub_ZB1p": ("zb_h1", "span_ms"),
    "bub_ZB2p": ("zb_greedy", "span_ms"),
}
NOTES = {
    "bub_1F1BI_published": "the authors let later chunks wait for one microbatch of a group only; here all wait",
    "bub_ZB1p": "the authors' search; our order is ZB-H1",
    "bub_ZB2p": "the authors' search; our order is built for makespan, within the same memory",
}
CLUSTER = """version: 1
name: devices
device_kinds: {{device: {{memory: {memory} B}}}}
devices: [{{kind: device, count: {count}}}]
links: [{{name: port, per: device, bandwidth: 100 GB/s}}]
routes: [{{over: port, latency: 0 us}}]
"""
CONFIG = """version: 1
model: layers.csv
cluster: cluster.yaml
cases: {{devices: [{p}], microbatches: [{m}]}}
plan: {{families: [1f1b], stages_per_rank: 1, iterations: 1, recompute: none, allocator: none}}
baselines: [1f1b, zb_h1, zb_h2, zb_greedy, {{name: interleaved, family: interleaved_1f1b, stages_per_rank: {v}}}]
engines: estimate
"""


def plans_of(row: dict, program: Path, folder: Path) -> dict:
    """Our plans for a setting: a layer for each chunk, times as profiled, memory that of 2 p forwards (ZB-2p's)."""
    p, m, v, hidden, heads = (int(row[key]) for key in ("p", "m", "v", "hidden", "heads"))
    kept = 1000 * (34 * hidden + 5 * heads * SEQUENCE)
    half = 1000 * 32 * hidden
    times = ",".join(f"{float(row[key]) / v:.6f}" for key in ("TF_ms", "TB_ms", "TW_ms"))
    folder.mkdir(parents=True, exist_ok=True)
    head = "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes,output_ms\n"
    (folder / "layers.csv").write_text(head + "".join(f"chunk_{i},{times},1000,0,{kept // v},{half // v},0,{row['Tcomm_ms']}\n" for i in range(p * v)))
    (folder / "cluster.yaml").write_text(CLUSTER.format(memory=2 * p * kept + 10**6, count=p))
    (folder / "setting.yaml").write_text(CONFIG.format(p=p, m=m, v=v))
    done = subprocess.run([program, folder / "setting.yaml", "--out", folder / "results", "--quiet"], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"schedule_tables: {folder}: {done.stderr}")
    case = json.loads((folder / "results/results.json").read_text())["cases"][0]
    return {plan["plan"]: plan for plan in case["plans"]}


def rows_of(row: dict, program: Path, out: Path) -> list[dict]:
    name = f"{row['model']}_p{row['p']}_m{row['m']}"
    print(name, file=sys.stderr, flush=True)
    plans = plans_of(row, program, out / name)
    ideal = int(row["m"]) * sum(float(row[key]) for key in ("TF_ms", "TB_ms", "TW_ms"))
    rows = []
    for column, (plan, figure) in SCHEDULES.items():
        time = plans[plan][figure]
        ours = f"{1 - ideal / time:.4f}" if time else ""
        rows.append({"model": row["model"], "p": row["p"], "m": row["m"], "rate": column.removeprefix("bub_").removesuffix("_published"), "paper": row[column], "ours": ours,
                     "difference": f"{float(ours) - float(row[column]):+.4f}" if ours else "", "by": figure.removesuffix("_ms"),
                     "note": NOTES.get(column, "") if time else plans[plan]["reason"]})
    return rows


def markdown(rows: list[dict]) -> str:
    text = "# The zero-bubble paper's bubble rates\n\nMade by schedule_tables.py; do not edit. Ours is *estimated*.\n\n"
    text += "| rate | settings | equal to 4 decimals | largest difference |\n|---|---|---|---|\n"
    for rate in dict.fromkeys(row["rate"] for row in rows):
        found = [row for row in rows if row["rate"] == rate and row["ours"]]
        equal = sum(row["ours"] == row["paper"] for row in found)
        largest = max((row["difference"] for row in found), key=lambda text: abs(float(text)), default="")
        text += f"| {rate} | {len(found)} | {equal} | {largest} |\n"
    text += "\n| " + " | ".join(rows[0]) + " |\n" + "|---" * len(rows[0]) + "|\n"
    return text + "".join("| " + " | ".join(row.values()) + " |\n" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=HERE.parents[2] / "build/release/experiments/pfeife-exp")
    parser.add_argument("--out", type=Path, default=Path("results/schedule_tables"))
    parser.add_argument("--settings", type=int, default=12, help="only the first so many")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if tables.csv says otherwise")
    options = parser.parse_args()
    with open(HERE / "paper/zero_bubble.csv") as file:
        published = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = [line for row in published[:options.settings] for line in rows_of(row, options.program, options.out)]
    file = HERE / "tables.csv"
    if options.check:
        known = list(csv.DictReader(open(file)))
        different = [row for row in rows if row not in known]
        for row in different:
            print("differs:", row, file=sys.stderr)
        stale = (HERE / "tables.md").read_text() != markdown(known)
        if stale:
            print("tables.md is not what tables.csv says; run schedule_tables.py", file=sys.stderr)
        return 1 if different or stale else 0
    with open(file, "w") as out:
        writer = csv.DictWriter(out, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (HERE / "tables.md").write_text(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
