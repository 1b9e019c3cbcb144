#!/usr/bin/env python3
"""torchgpipe's speed benchmarks (eight P40s) with this project's costs, schedule and simulator.

    python3 experiments/studies/schedule_tables/torchgpipe.py           # 19 rows, into torchgpipe.csv and torchgpipe.md
    python3 experiments/studies/schedule_tables/torchgpipe.py --check   # writes nothing; fails if torchgpipe.csv or .md says otherwise

Stages are the published balances: the layers of configs/models' archives, added up by the pieces that torchgpipe counts. A row is a layer
table of these stages and GPipe's order with recomputation, as torchgpipe runs it: a microbatch is recomputed while its gradient is awaited,
the last one is kept. Needs build/release (or --program). Finished cases are kept in results/schedule_tables.
"""
import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean

HERE = Path(__file__).resolve().parent
CONFIGS = HERE.parents[2] / "configs"
MODELS = {"AmoebaNet-D(18 256)": "amoebanet_d", "U-Net(5 64)": "unet_5_64", "ResNet-101": "resnet101"}
FITTED = {"AmoebaNet-D(18 256)": "n2m1", "U-Net(5 64)": "baseline", "ResNet-101": "baseline"}  # the row of each that its factor comes from
# Cost curves: the cluster's own (the default, measured on A100 and H100), which is scored; and, chosen after seeing the scores and only reported,
# the same with works divided by 13.3, the A100's TF32 peak over the P40's: a smaller device is full with less work.
CURVES = {"shipped": "", "filled": "0.158 GFLOP, 0.309|1.28 GFLOP, 0.626|10.3 GFLOP, 0.774|83 GFLOP, 0.744"}
CONFIG = """version: 1
model: {model}
cluster: {cluster}
training: {{precision: fp32, optimizer: sgd{size}}}
cases: {{devices: [{n}], microbatches: [{m}]}}
{plan}baselines: []
simulation: {{launch_overhead: 0 us}}
"""
BEGIN, END = "<!-- torchgpipe -->", "<!-- end -->"
COLUMNS = ["benchmark", "experiment", "n", "m", "balance", "paper", "curve", "ours", "calibrated", "error_percent", "calibrated_error_percent", "role", "compute"]


def cluster(curve: str) -> str:
    file = CONFIGS / "clusters/p40_x8.yaml"
    points = ", ".join(f"[{point}]" for point in CURVES[curve].split("|"))
    return f"{{file: {file}, set: {{device_kinds.p40.gemm_efficiency.fp32: [{points}]}}}}" if CURVES[curve] else str(file)


def pieces(model: str, layers: list[dict]) -> list[int]:
    """Which of torchgpipe's pieces each layer belongs to: those of a Sequential, counted flat."""
    found, piece = [], 0
    activations = {}  # of a block of ResNet: how many so far
    for layer in layers:
        path = layer["module"].split(".")
        kind = layer["name"].rstrip("0123456789_")
        if model == "amoebanet_d":
            piece = 0 if path[0] == "stem" else 1 + int(path[1]) if path[0] == "cells" else 23 if path[0] == "classifier" else piece
        elif model == "unet_5_64":  # an encoder: 20, the skip, the pool; 20 at the bottom; a decoder: upsampling, the skip, 20
            if path[0] == "encoder":
                piece = 22 * int(path[1]) + int(path[2])
            elif path[0] == "bottom":
                piece = 110 + int(path[1])
            elif path[0] == "decoder":
                piece = 130 + 22 * int(path[1]) + 2 + int(path[2])
            elif path[0] == "segment":
                piece = 240
            elif kind == "max_pool":  # max_pool2d: the next piece but one
                piece += 2
            elif layer["name"].startswith(("upsample", "cat")):
                piece += 1
        else:  # a block: what is kept for the residual, conv, norm, ReLU, conv, norm, ReLU, conv, norm, residual, ReLU
            if path[0] == "stem":
                piece = int(path[1])
            elif path[0] == "blocks":
                first = 4 + 11 * int(path[1])
                place = {"conv1": 1, "norm1": 2, "conv2": 4, "norm2": 5, "conv3": 7, "norm3": 8, "shortcut": 9}
                piece = first + place[path[2]] if len(path) > 2 else max(piece, first + 9)
            elif path[0] == "classifier":
                piece = 369
        found.append(piece)
    if found != sorted(found):
        sys.exit(f"torchgpipe: the layers of {model} are not in the order of its pieces")
    return found


def stages(model: str, size: int, balance: list[int], curve: str, program: Path, folder: Path) -> list[tuple[float, float, int]]:
    """Forward, backward (ms) and bytes sent on, of each device; as published figures of the P40 say."""
    config = folder / f"{model}_{size}_{curve}.yaml"
    config.write_text(CONFIG.format(model=CONFIGS / f"models/{model}.pt2", cluster=cluster(curve),
                                    size=f", microbatch_size: {size}", n=1, m=1, plan=""))
    done = subprocess.run([program, config, "--layers=csv"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"torchgpipe: {config}: {done.stderr}")
    layers = list(csv.DictReader(done.stdout.splitlines()))
    of_layer = pieces(model, layers)
    result, begin = [], 0
    for count in balance or [10**6]:
        mine = [layer for layer, piece in zip(layers, of_layer) if begin <= piece < begin + count]
        begin += count
        result.append((sum(int(layer["forward_ns"]) for layer in mine) / 1e6,
                       sum(int(layer["backward_input_ns"]) + int(layer["backward_weight_ns"]) for layer in mine) / 1e6, int(mine[-1]["sent_bytes"])))
    return result


def order(n: int, m: int, kept: bool) -> str:
    """GPipe's rows. W of a microbatch stands for the recomputation of the one before it: both follow I of the same device at once."""
    rows = []
    for s in range(n):
        back = [f"{s}I{b},{s}W{b}" for b in reversed(range(m))]
        rows.append(",".join([*(f"{s}F{b}" for b in range(m)), *back]))
    return "\n".join(rows) + "\n"


def step(row: dict, costs: list[tuple[float, float, int]], factor: float, program: Path, here: Path) -> float:
    """Simulated ms from the first forward to the last backward."""
    n, m = int(row["n"]), int(row["m"])
    recomputes = row["experiment"] != "baseline"
    here.mkdir(parents=True, exist_ok=True)
    text = "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,temporary_bytes\n"
    for s, (forward, backward, sent) in enumerate(costs):
        # One microbatch is always recomputed: on the last device on the way, on others while the gradient is awaited.
        first, second = (backward, forward if recomputes else 0) if m > 1 else (backward + (forward if recomputes and s == n - 1 else 0), 0)
        text += f"stage_{s},{forward * factor:.6f},{first * factor:.6f},{second * factor:.6f},{sent if s < n - 1 else 1},0,0,0,0\n"
    (here / "stages.csv").write_text(text)
    (here / "order.csv").write_text(order(n, m, recomputes))
    (here / "row.yaml").write_text(CONFIG.format(model="stages.csv", cluster=CONFIGS / "clusters/p40_x8.yaml", size="", n=n, m=m,
                                                 plan="plan: {schedule: order.csv, cuts: each_layer}\n").replace("cases: {devices: [%d], microbatches: [%d]}\n" % (n, m), ""))
    done = subprocess.run([program, here / "row.yaml", "--out", here / "results", "--quiet"], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"torchgpipe: {here}: {done.stderr}")
    trace = next((here / "results").glob("*/planned/trace.json"))
    ends = [event["ts"] + event["dur"] for event in json.loads(trace.read_text())["traceEvents"]
            if event.get("cat", "").startswith("backward") and "I" in event.get("name", "")]
    return max(ends) / 1000


def compute(benchmarks: list[str], program: Path, out: Path) -> list[dict]:
    with open(HERE / "paper/torchgpipe.csv") as file:
        published = list(csv.DictReader(line for line in file if not line.startswith("#")))
    folder = out / "torchgpipe"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for benchmark, curve in [(benchmark, curve) for benchmark in benchmarks for curve in CURVES]:
        model = MODELS[benchmark]
        mine = [row for row in published if row["benchmark"] == benchmark]
        costs = {}
        for row in mine:
            size = round(int(row["batch"]) / int(row["m"]))
            costs[row["experiment"]] = stages(model, size, [int(x) for x in row["balance"].split("-")] if row["balance"] else [], curve, program, folder)

        def rate(row, factor):
            size = round(int(row["batch"]) / int(row["m"]))
            print(benchmark, row["experiment"], curve, file=sys.stderr, flush=True)
            here = folder / f"{model}_{row['experiment']}_{curve}_{factor:.5f}"
            return 1000 * size * int(row["m"]) / step(row, costs[row["experiment"]], factor, program, here)

        anchor = next(row for row in mine if row["experiment"] == FITTED[benchmark])
        factor = 1.0
        for _ in range(3):
            factor = round(factor * rate(anchor, factor) / float(anchor["throughput_per_s"]), 5)
        for row in mine:
            paper, plain, calibrated = float(row["throughput_per_s"]), rate(row, 1.0), rate(row, factor)
            rows.append(dict(zip(COLUMNS, [benchmark, row["experiment"], row["n"], row["m"], row["balance"], row["throughput_per_s"], curve, f"{plain:.3f}",
                                           f"{calibrated:.3f}", f"{100 * (plain / paper - 1):.1f}", f"{100 * (calibrated / paper - 1):.1f}",
                                           "fitted" if row is anchor else "scored" if curve == "shipped" else "reported", f"{factor:.5f}"])))
    return rows


def summary(rows: list[dict]) -> str:
    text = "| benchmark | curve | fitted to | compute | rows | mean error % | largest % | without: mean % |\n|---|---|---|---|---|---|---|---|\n"
    for benchmark, curve in [(benchmark, curve) for curve in CURVES for benchmark in MODELS]:
        mine = [row for row in rows if row["benchmark"] == benchmark and row["curve"] == curve]
        scored = [row for row in mine if row["role"] != "fitted"]
        errors = [abs(float(row["calibrated_error_percent"])) for row in scored]
        text += f"| {benchmark} | {curve if curve == 'shipped' else 'filled (reported)'} | {FITTED[benchmark]} | {mine[0]['compute']} | {len(scored)} | {mean(errors):.1f} | {max(errors):.1f} | {mean(abs(float(row['error_percent'])) for row in scored):.1f} |\n"
    return text


def texts(rows: list[dict]) -> dict[Path, str]:
    """torchgpipe.md, and what the README says of it."""
    head, rest = (HERE / "README.md").read_text().split(BEGIN)
    text = "# torchgpipe's samples a second\n\nMade by torchgpipe.py; do not edit. Ours is *simulated*. Error: ours / paper - 1. `compute`: factor of compute times, from the fitted row.\n" \
           "Curve `shipped`: the cluster's; `filled`: works divided by 13.3, chosen after seeing the scores.\n\n" + summary(rows)
    text += "\n| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"
    text += "".join("| " + " | ".join(row[column] for column in COLUMNS) + " |\n" for row in rows)
    return {HERE / "torchgpipe.md": text, HERE / "README.md": head + BEGIN + "\n" + summary(rows) + END + rest.split(END)[1]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="*", help="with --check, of: " + ", ".join(MODELS) + " (default: all)")
    parser.add_argument("--program", type=Path, default=HERE.parents[2] / "build/release/experiments/pfeife-exp")
    parser.add_argument("--out", type=Path, default=Path("results/schedule_tables"))
    parser.add_argument("--check", action="store_true", help="write nothing; fail if torchgpipe.csv or torchgpipe.md says otherwise")
    options = parser.parse_args()
    if options.benchmarks and not options.check:
        parser.error("all benchmarks are written together; name some with --check only")
    if unknown := set(options.benchmarks) - set(MODELS):
        parser.error(f"unknown benchmark {unknown.pop()}; use {', '.join(MODELS)}")
    rows = compute(options.benchmarks or list(MODELS), options.program.resolve(), options.out.resolve())
    table = HERE / "torchgpipe.csv"
    if options.check:
        known = list(csv.DictReader(open(table)))
        wrong = [f"torchgpipe.csv has no such row: {row}" for row in rows if row not in known]
        wrong += [f"{file.name} is not what torchgpipe.csv says; run torchgpipe.py" for file, text in texts(known).items() if file.read_text() != text]
        for sentence in wrong:
            print(sentence, file=sys.stderr)
        return 1 if wrong else 0
    with open(table, "w") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for file, text in texts(rows).items():
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
