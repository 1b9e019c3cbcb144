#!/usr/bin/env python3
"""The best step over all cuts and all orders of F, I and W, beside the plan and the bound of pfeife-exp, on tiny tables.

    python3 optimum.py [PROGRAM]      needs ortools (9.15): CP-SAT proves the optimum

PROGRAM is pfeife-exp (default: build/release/experiments/pfeife-exp). As many microbatches as devices; layers whose F, I and W
take 1 ms each and are all alike, a message `message` ms; memory does not bind. Stages dealt round (`stages_per_rank`).
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ortools.sat.python import cp_model

ROOT = Path(__file__).resolve().parents[3]
CASES = [(3, 1, 36, 0), (4, 1, 48, 0), (5, 1, 60, 0), (3, 1, 36, 3), (4, 1, 48, 6), (3, 2, 30, 0)]  # devices, stages, layers, message
SECONDS = 300


def optimum(devices: int, stages_per_rank: int, layers: int, message: int) -> tuple[float, bool]:
    stages, passes = devices * stages_per_rank, [(m, op) for m in range(devices) for op in "FIW"]
    model = cp_model.CpModel()
    most = 3 * layers * devices
    size = [model.NewIntVar(1, layers, "") for _ in range(stages)]
    model.Add(sum(size) == layers)
    begin = {(s, *p): model.NewIntVar(0, most, "") for s in range(stages) for p in passes}
    end = {key: model.NewIntVar(0, most, "") for key in begin}
    step = model.NewIntVar(0, most, "")
    for rank in range(devices):
        model.AddNoOverlap([model.NewIntervalVar(begin[key], size[key[0]], end[key], "")
                            for key in begin if key[0] % devices == rank])
        model.Add(step >= 3 * devices * sum(size[rank::devices]) + sum(size[:rank]) + rank * message)  # implied
    for (s, m, op), starts in begin.items():
        if op == "F" and s > 0:
            model.Add(starts >= end[s - 1, m, "F"] + message)
        if op == "I":
            model.Add(starts >= (end[s + 1, m, "I"] + message if s + 1 < stages else end[s, m, "F"]))
        if op == "W":
            model.Add(starts >= end[s, m, "I"])
            model.Add(step >= end[s, m, "W"])
        if m > 0:
            model.Add(starts >= end[s, m - 1, op])  # microbatches are alike
    model.Minimize(step)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = SECONDS
    proven = solver.Solve(model) == cp_model.OPTIMAL
    return solver.ObjectiveValue(), proven


def planned(program: Path, devices: int, stages_per_rank: int, layers: int, message: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head = ("name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_bytes,"
                "weight_saved_bytes,temporary_bytes,output_ms\n")
        rows = [f"l{layer},1,1,1,1000,1000,1000,1000,0,{message}\n" for layer in range(layers)]
        (folder / "layers.csv").write_text(head + "".join(rows))
        (folder / "case.yaml").write_text(
            f"version: 1\nmodel: layers.csv\ncluster: {ROOT}/configs/clusters/h100_sxm_x8.yaml\nengines: [estimate]\n"
            f"cases: {{devices: {devices}, microbatches: {devices}}}\n"
            f"plan: {{iterations: 100, stages_per_rank: [{stages_per_rank}]}}\n")
        subprocess.run([program, folder / "case.yaml", "--out", folder / "out", "--jobs", "1", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        plan = json.loads(next((folder / "out").glob("*/case.json")).read_text())["plans"][0]
        return plan["estimate_ms"], plan["lower_bound_ms"]


def main() -> None:
    program = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/release/experiments/pfeife-exp"
    print("| devices, microbatches | stages a rank | layers | message, ms | optimum, ms | plan, ms | bound, ms | bound below the optimum, % |")
    print("|---" * 8 + "|")
    for case in CASES:
        (best, proven), (plan, bound) = optimum(*case), planned(program, *case)
        print("| " + " | ".join(map(str, [*case, f"{best:.0f}" + ("" if proven else " (best found)"), f"{plan:.1f}", f"{bound:.1f}",
                                          f"{100 * (1 - bound / best):.1f}"])) + " |", flush=True)


if __name__ == "__main__":
    main()
