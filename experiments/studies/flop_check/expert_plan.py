#!/usr/bin/env python3
"""Plans of a Mixtral of eight layers, whose experts cost FLOPs or none; see README.md.

    expert_plan.py [--out build/flop_check]
"""
import argparse
import csv
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "configs" / "models"))

CONFIG = """version: 1
model: mixtral_8_layers.pt2
cluster: {root}/configs/clusters/h100_sxm_x8.yaml
training: {{precision: bf16_amp, optimizer: adam, microbatch_size: 1}}
cases: {{devices: 8, microbatches: 16}}
plan: {{families: 1f1b, stages_per_rank: 1{cuts}}}
baselines: []
"""
FREE = "operators: {transformers::grouped_mm_fallback: {flops: \"0\", bytes: io}}\n"


def mixtral(batch):
    """Mixtral 8x7B with eight layers instead of 32."""
    from shipped_models import OwnLoss, tokens
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(num_hidden_layers=8, use_cache=False, attn_implementation="sdpa")
    return OwnLoss(MixtralForCausalLM(config)), {"data": tokens(batch, 1024), "labels": tokens(batch, 1024)}


def export_archive(path):
    import torch
    from pt2_export import write_archive
    from shipped_models import Model

    write_archive(path, Model(mixtral, 1, real_weights=False), 1, torch.float32, keep_weights=False)


def planned(out, name, operators="", cuts=""):
    cuts = f", cuts: [{cuts.replace(' ', ', ')}]" if cuts else ""
    (out / f"{name}.yaml").write_text(CONFIG.format(root=ROOT, cuts=cuts) + operators)
    subprocess.run([ROOT / "build/release/experiments/pfeife-exp", f"{name}.yaml", "--out", name, "--quiet"], cwd=out,
                   check=True, stdout=subprocess.DEVNULL)
    with open(out / name / "results.csv") as file:
        return next(csv.DictReader(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "flop_check")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "mixtral_8_layers.pt2").exists():
        export_archive(out / "mixtral_8_layers.pt2")
    print("| planned with | priced with | estimated step | cuts behind layers |\n|---|---|---|---|")
    free = planned(out, "experts_free", FREE)
    for known, priced, plan in (("no FLOPs", "no FLOPs", free),
                               ("no FLOPs", "FLOPs", planned(out, "experts_given", cuts=free["cuts"])),
                               ("FLOPs", "FLOPs", planned(out, "experts"))):
        print(f"| {known} | {priced} | {float(plan['estimate_ms']):.1f} ms | {plan['cuts']} |")


if __name__ == "__main__":
    main()
