#!/usr/bin/env python3
"""Plans with nothing, stages and blocks recomputed, where memory binds; see README.md.

    recompute_plans.py [CASE...] [--out build/recomputation] [--program pfeife-exp]
"""
import argparse
import csv
import resource
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONFIG = """version: 1
model: {model}
cluster: {cluster}
training: {{precision: {precision}, optimizer: adam, microbatch_size: {size}}}
cases: {{devices: {devices}, microbatches: {microbatches}}}
plan: {{families: [{families}], stages_per_rank: 1, recompute: {recompute}}}
baselines: []
"""
LLAMA2 = dict(model=ROOT / "configs/models/llama2_7b.pt2", devices=8, microbatches=16)
SMALL = dict(LLAMA2, cluster=ROOT / "configs/clusters/rtx4090_x8.yaml", precision="bf16_amp")
CASES = {
    "llama2_7b, 8 A100-40GB": dict(LLAMA2, cluster=ROOT / "configs/clusters/a100_sxm4_40gb_x8.yaml", precision="tf32", size=4,
                                   families="1f1b, zb_h1"),
    "llama2_7b, 8 x 24 GB, 2 sequences": dict(SMALL, size=2, families="1f1b"),
    "llama2_7b, 8 x 24 GB, 4 sequences": dict(SMALL, size=4, families="1f1b"),
}
RECOMPUTE = ("none", "if_needed", "choose", "blocks")


def planned(out, program, case, recompute):
    """Estimated step in milliseconds (None: nothing fits), what is recomputed, processor seconds of the planner."""
    name = "".join(c for c in case if c.isalnum()) + "_" + recompute
    (out / f"{name}.yaml").write_text(CONFIG.format(recompute=recompute, **CASES[case]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([program, f"{name}.yaml", "--out", name, "--quiet", "--force"], cwd=out, stdout=subprocess.DEVNULL)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    with open(out / name / "results.csv") as file:
        row = next(csv.DictReader(file))
    step = row["estimate_ms"]
    return float(step) if step else None, row["knobs"], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"of: {'; '.join(CASES)} (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "recomputation")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/experiments/pfeife-exp")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    cases = options.cases or list(CASES)
    print("| case | recompute | estimated step | recomputed | beside `choose` | planning, beside `none` |\n|---|---|---|---|---|---|")
    for case in cases:
        plans = {recompute: planned(out, options.program.resolve(), case, recompute) for recompute in RECOMPUTE}
        for recompute, (step, knobs, seconds) in plans.items():
            chosen = plans["choose"][0]
            gain = f"{100 * (chosen / step - 1):+.1f} % faster" if step and chosen and recompute == "blocks" else ""
            print(f"| {case} | {recompute} | {f'{step:.0f} ms' if step else 'nothing fits'} | {knobs} | {gain} | "
                  f"{seconds / plans['none'][2]:.2f} x |", flush=True)


if __name__ == "__main__":
    main()
