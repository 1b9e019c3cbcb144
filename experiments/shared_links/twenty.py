#!/usr/bin/env python3
"""How far is a plan from the best that a long search finds? Twenty cases of this study, each searched three times.

    python3 twenty.py [PROGRAM] > twenty.csv

PROGRAM is pfeife-exp (default: build/release/experiments/pfeife-exp). Small models first; goes on where it was. `--have`
runs nothing and writes the lines of what is there.

The twenty: the seventeen models in alphabetical order, then the first three again, two to each pair of cluster and
number of devices. Short is the study's own effort, long has fifty times as much, longer five times as much as long (what a
config has that says nothing of it); both may recompute any stage and have up to four stages a rank. A gap is over the
fastest of the three.
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
MORE = {"plan.stages_per_rank": "[1, 2, 3, 4]", "plan.recompute": "choose"}
EFFORTS = {"short": {"plan.iterations": 2}, "long": {"plan.iterations": 100, **MORE}, "longer": {"plan.iterations": 500, **MORE}}


def twenty() -> list[tuple[str, str, int]]:
    models = sorted(SHIPPED + EXPORTED)
    places = [(cluster, devices) for cluster in CLUSTERS for devices in (4, 8)]
    return [((models * 2)[i], *places[i // 2]) for i in range(2 * len(places))]


def cluster_file(name: str) -> Path:
    own = HERE / f"{name}.yaml"
    return own if own.exists() else ROOT / "configs/clusters" / own.name


def model_file(name: str) -> Path:
    return (ROOT / "configs/models" if name in SHIPPED else ROOT / "build/models") / f"{name}.pt2"


def folder_of(case: tuple[str, str, int]) -> Path:
    return ROOT / "results/twenty" / "_".join(map(str, case))


def run(program: Path, case: tuple[str, str, int], effort: dict, folder: Path) -> None:
    model, cluster, devices = case
    values = {"model": model_file(model), "cluster": cluster_file(cluster), "cases": f"{{devices: {devices}}}", **effort}
    settings = [text for key, value in values.items() for text in ("--set", f"{key}={value}")]
    started = time.monotonic()
    found = subprocess.run([program, HERE / "shipped.yaml", *settings, "--out", folder, "--jobs", "1", "--quiet"],
                           stdout=subprocess.DEVNULL)
    if found.returncode not in (0, 3):  # 3: nothing fits
        sys.exit(f"{folder}: pfeife-exp ended with {found.returncode}")
    seconds = folder / "seconds"
    if not seconds.exists():
        seconds.write_text(f"{time.monotonic() - started:.1f}\n")


def result(folder: Path) -> dict | None:
    records = list(folder.glob("*/case.json"))
    if not records or not (folder / "seconds").exists():
        return None
    plan = json.loads(records[0].read_text())["plans"][0]
    name = f"{plan['family']}, V={plan['stages_per_rank']}" if plan["feasible"] else "nothing fits"
    return {"plan": name, "ms": plan["simulate_ms"], "s": float((folder / "seconds").read_text())}


def line_of(case: tuple[str, str, int]) -> dict | None:
    found = {name: result(folder_of(case) / name) for name in EFFORTS}
    if not found["short"] or not found["long"]:
        return None
    line = dict(zip(("model", "cluster", "devices"), case))
    for name, one in found.items():
        for key in ("plan", "ms", "s"):
            line[f"{name}_{key}"] = one[key] if one else ""
    times = [one["ms"] for one in found.values() if one and one["ms"]]
    for name, one in found.items():
        line[f"{name}_gap"] = f"{one['ms'] / min(times) - 1:.4f}" if one and one["ms"] else ""
    return line


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--have"]
    program = Path(arguments[0]) if arguments else ROOT / "build/release/experiments/pfeife-exp"
    if "--have" not in sys.argv:
        for name, effort in EFFORTS.items():
            for case in sorted(twenty(), key=lambda case: model_file(case[0]).stat().st_size):
                run(program, case, effort, folder_of(case) / name)
    lines = [line for case in twenty() if (line := line_of(case))]
    if not lines:
        sys.exit("no case has both its short and its long search; run without --have")
    table = csv.DictWriter(sys.stdout, lines[0].keys(), lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    for name in EFFORTS:
        gaps = [float(line[f"{name}_gap"]) for line in lines if line[f"{name}_gap"]]
        print(f"{name}: {len(gaps)} of 20 cases, within 2 % {sum(gap <= 0.02 for gap in gaps)}, most {max(gaps, default=0):.4f}",
              file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
