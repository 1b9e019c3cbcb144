#!/usr/bin/env python3
"""How far is a plan from the best that a long search finds? Twenty cases of this study, each searched twice more.

    python3 twenty.py [PROGRAM] > twenty.csv

PROGRAM is pfeife-exp (default: build/release/experiments/pfeife-exp). Needs the study's own results (results/shipped and
results/exported). Small models first; goes on where it was. `--have` runs nothing and writes the lines of what is there.

The twenty: the seventeen models in alphabetical order, then the first three again, two to each pair of cluster and
number of devices. Study is the plan of the study, long has an effort of 100, longer five times as much (what a config has
that says nothing of it); both may recompute any stage. A gap is over the fastest of the three. Seconds are of the search,
by the clock.
"""
import csv
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SHIPPED = ["bert_large", "convnext_base", "densenet121", "gpt2_large", "llama2_7b", "resnet50", "sdxl_unet", "swin_b",
           "t5_large", "timm_vit_g14", "vit_g14", "vit_g14_40"]
EXPORTED = ["efficientnet_v2_l", "opt_1_3b", "vgg19", "whisper_medium", "wide_resnet101_2"]
CLUSTERS = ["rtx4090_4x2_ethernet", "3090_x8", "a100_4x8", "h100_sxm_x8", "laptop_8_cores"]
EFFORTS = {name: {"plan.iterations": effort, "plan.recompute": "choose"} for name, effort in (("long", 100), ("longer", 500))}


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
    found = subprocess.run([program, HERE / "shipped.yaml", *settings, "--out", folder, "--jobs", "1", "--quiet"],
                           stdout=subprocess.DEVNULL)
    if found.returncode not in (0, 3):  # 3: nothing fits
        sys.exit(f"{folder}: pfeife-exp ended with {found.returncode}")


def cases_of(folder: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in folder.glob("*/case.json")]


def result(case: dict) -> dict:
    plan = case["plans"][0]
    name = f"{plan['family']}, V={plan['stages_per_rank']}" if plan["feasible"] else "nothing fits"
    return {"plan": name, "ms": plan["simulate_ms"], "s": round(plan["search_s"], 1)}


def results_of_study() -> dict[tuple[str, str, int], dict]:
    cases = cases_of(ROOT / "results/shipped") + cases_of(ROOT / "results/exported")
    return {(Path(case["model"]).stem, Path(case["cluster"]).stem, case["plans"][0]["devices"]): result(case) for case in cases}


def line_of(case: tuple[str, str, int], study: dict | None) -> dict | None:
    found = {"study": study}
    for name in EFFORTS:
        cases = cases_of(folder_of(case) / name)
        found[name] = result(cases[0]) if cases else None
    if not study or not found["long"]:
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
    study = results_of_study()
    lines = [line for case in twenty() if (line := line_of(case, study.get(case)))]
    if not lines:
        sys.exit("no case has both the study's plan and a long search; run the study, then this without --have")
    table = csv.DictWriter(sys.stdout, lines[0].keys(), lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    for name in ("study", *EFFORTS):
        gaps = [float(line[f"{name}_gap"]) for line in lines if line[f"{name}_gap"]]
        print(f"{name}: {len(gaps)} of 20 cases, within 2 % {sum(gap <= 0.02 for gap in gaps)}, most {max(gaps, default=0):.4f}",
              file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
