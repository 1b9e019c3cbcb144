#!/usr/bin/env python3
"""How far is a plan from the best that a long search finds? Twenty cases of this study, each searched twice.

    python3 twenty.py [PROGRAM] > twenty.csv

PROGRAM is pfeife-exp (default: build/release/experiments/pfeife-exp). Goes on where it was; `--have` runs nothing and
writes the lines of what is there.

The twenty: the seventeen models in alphabetical order, then the first three again, two to each pair of cluster and
number of devices. Short is the study's own effort, long has fifty times as much, may recompute any stage, and has up to
four stages a rank.
"""
import csv
import json
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHIPPED = ["bert_large", "convnext_base", "densenet121", "gpt2_large", "llama2_7b", "resnet50", "sdxl_unet", "swin_b",
           "t5_large", "timm_vit_g14", "vit_g14", "vit_g14_40"]
EXPORTED = ["efficientnet_v2_l", "opt_1_3b", "vgg19", "whisper_medium", "wide_resnet101_2"]
CLUSTERS = ["rtx4090_4x2_ethernet", "3090_x8", "a100_4x8", "h100_sxm_x8", "laptop_8_cores"]
SHORT = {"plan.iterations": 2}
LONG = {"plan.iterations": 100, "plan.stages_per_rank": "[1, 2, 3, 4]", "plan.recompute": "choose"}


def twenty() -> list[tuple[str, str, int]]:
    models = sorted(SHIPPED + EXPORTED)
    places = [(cluster, devices) for cluster in CLUSTERS for devices in (4, 8)]
    return [((models * 2)[i], *places[i // 2]) for i in range(2 * len(places))]


def cluster_file(name: str) -> Path:
    own = HERE / f"{name}.yaml"
    return own if own.exists() else ROOT / "configs/clusters" / own.name


def run(program: Path, case: tuple[str, str, int], effort: dict, folder: Path) -> None:
    model, cluster, devices = case
    file = (ROOT / "configs/models" if model in SHIPPED else ROOT / "build/models") / f"{model}.pt2"
    values = {"model": file, "cluster": cluster_file(cluster), "cases": f"{{devices: {devices}}}", **effort}
    settings = [text for key, value in values.items() for text in ("--set", f"{key}={value}")]
    started = time.monotonic()
    found = subprocess.run([program, HERE / "shipped.yaml", *settings, "--out", folder, "--jobs", "1", "--quiet"],
                           stdout=subprocess.DEVNULL)
    if found.returncode not in (0, 3):  # 3: nothing fits
        sys.exit(f"{folder}: pfeife-exp ended with {found.returncode}")
    seconds = folder / "seconds"
    if not seconds.exists():
        seconds.write_text(f"{time.monotonic() - started:.1f}\n")


def result(folder: Path) -> tuple[str, float | None, float]:
    [record] = folder.glob("*/case.json")
    plan = json.loads(record.read_text())["plans"][0]
    name = f"{plan['family']}, V={plan['stages_per_rank']}" if plan["feasible"] else "nothing fits"
    return name, plan["simulate_ms"], float((folder / "seconds").read_text())


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--have"]
    program = Path(arguments[0]) if arguments else ROOT / "build/release/experiments/pfeife-exp"
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["model", "cluster", "devices", "short", "short_ms", "short_s", "long", "long_ms", "long_s", "gap"])
    for case in twenty():
        folder = ROOT / "results/twenty" / "_".join(map(str, case))
        try:
            for effort, name in ((SHORT, "short"), (LONG, "long")):
                if "--have" not in sys.argv:
                    run(program, case, effort, folder / name)
            short, short_ms, short_s = result(folder / "short")
            long, long_ms, long_s = result(folder / "long")
        except (ValueError, FileNotFoundError):
            continue
        gap = f"{short_ms / min(short_ms, long_ms) - 1:.4f}" if short_ms and long_ms else ""
        table.writerow([*case, short, short_ms, short_s, long, long_ms, long_s, gap])
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
