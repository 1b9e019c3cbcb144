#!/usr/bin/env python3
"""Plans with nothing, stages and blocks recomputed, where memory binds; see README.md.

    recompute_plans.py [CASE...] [--out build/recomputation] [--program pfeife-exp]
"""
import argparse
import csv
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
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
LARGE = "Llama 3 70B, 64 H100"  # named to be planned: takes minutes, and transformers to export it
RECOMPUTE = ("none", "if_needed", "choose", "blocks")
H100_HOSTS = """devices: [{kind: h100_sxm, count: 64}]
devices_per_node: 8
links:
  - {name: nvswitch_port, per: device, within: node, bandwidth: 370 GB/s, duplex: full}
  - {name: nic, per: device, bandwidth: 50 GB/s, duplex: full}
routes:
  - {over: nvswitch_port, latency: 15 us}
  - {over: nic, latency: 20 us}
"""


def llama3_70b(batch):
    """Without weights, 4096 tokens a sequence; sizes of arXiv 2407.21783, table 3."""
    from shipped_models import OwnLoss, tokens
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=128256, hidden_size=8192, intermediate_size=28672, num_hidden_layers=80,
                         num_attention_heads=64, num_key_value_heads=8, max_position_embeddings=8192,
                         rope_theta=500000.0, use_cache=False, attn_implementation="sdpa")
    return OwnLoss(LlamaForCausalLM(config)), {"data": tokens(batch, 4096), "labels": tokens(batch, 4096)}


def large_case(out):
    """Its archive, made once, and eight of the shipped hosts of H100s as one cluster."""
    archive, cluster = out / "llama3_70b.pt2", out / "h100_sxm_8x8.yaml"
    if not archive.exists():
        sys.path.insert(0, str(ROOT / "configs" / "models"))
        import torch
        from pt2_export import write_archive
        from shipped_models import Model

        write_archive(archive, Model(llama3_70b, 1, real_weights=False), 1, torch.float32, keep_weights=False)
    host = (ROOT / "configs/clusters/h100_sxm_hosts.yaml").read_text()
    cluster.write_text(host[: host.index("devices: [")] + H100_HOSTS)
    return dict(model=archive, cluster=cluster, precision="bf16_amp", size=1, devices=64, microbatches=128, families="1f1b")


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
    parser.add_argument("cases", nargs="*", help=f"of: {'; '.join(CASES)} (default: these); {LARGE}")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "recomputation")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/experiments/pfeife-exp")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    cases = options.cases or list(CASES)
    if LARGE in cases:
        CASES[LARGE] = large_case(out)
    print("| case | recompute | estimated step | recomputed | beside `choose` | planning, beside `none` |\n|---|---|---|---|---|---|")
    for case in cases:
        kinds = RECOMPUTE if case != LARGE else ("choose", "blocks")  # the others take long
        plans = {recompute: planned(out, options.program.resolve(), case, recompute) for recompute in kinds}
        for recompute, (step, knobs, seconds) in plans.items():
            chosen = plans["choose"][0]
            gain = f"{100 * (chosen / step - 1):+.1f} % faster" if step and chosen and recompute == "blocks" else ""
            ratio = f"{seconds / plans['none'][2]:.2f} x" if "none" in plans else ""
            print(f"| {case} | {recompute} | {f'{step:.0f} ms' if step else 'nothing fits'} | {knobs} | {gain} | "
                  f"{ratio} |", flush=True)


if __name__ == "__main__":
    main()
