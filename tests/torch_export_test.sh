#!/usr/bin/env bash
# A plan's exports, read by torch.distributed.pipelining itself: split_points.json cuts tiny_mlp where the plan does, and
# every cell of schedule_torch.csv is an action. Usage: torch_export_test.sh PFEIFE_EXP REPOSITORY. Skipped (77) without a
# Python that has torch: python3, or $TORCH_PYTHON.
set -euo pipefail
exp=$1 repository=$2 python=${TORCH_PYTHON:-python3}
if ! "$python" -c 'import torch.distributed.pipelining.schedules' 2> /dev/null; then
  echo "skipped: $python has no torch.distributed.pipelining; set TORCH_PYTHON"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/plan.yaml" << EOF
version: 1
model: $repository/configs/models/tiny_mlp.pt2
cluster: $repository/configs/clusters/laptop.yaml
cases: {devices: 2, microbatches: 4}
plan: {families: [1f1b], cuts: [7]}  # after the GELU of the second block
baselines: []
engines: estimate
EOF
"$exp" "$folder/plan.yaml" --out "$folder/out" --quiet > /dev/null
PYTHONPATH=$repository/configs/models "$python" - "$folder"/out/*/planned << 'EOF'
import json, pathlib, sys

import torch
from tiny_models import TinyMlp
from torch.distributed.pipelining import SplitPoint, pipeline
from torch.distributed.pipelining.schedules import _Action

folder = pathlib.Path(sys.argv[1])
plan = json.loads((folder / "split_points.json").read_text())
spec = {path: getattr(SplitPoint, point) for path, point in plan["split_spec"].items()}
inputs = torch.randn(4, 8), torch.randint(8, (4,))
pipe = pipeline(TinyMlp(), inputs, split_spec=spec)
assert pipe.num_stages == len(plan["rank_of_stage"]) == 2, pipe.num_stages
names = [{n.rsplit(".", 1)[0] for n, _ in pipe.get_stage_module(s).named_parameters()} for s in (0, 1)]
assert names[0] == {"embed", "blocks.0.0", "blocks.0.1", "blocks.0.3", "blocks.1.0", "blocks.1.1"}, names
assert names[1] == {"blocks.1.3", "blocks.2.0", "blocks.2.1", "blocks.2.3", "head"}, names
rows = (folder / plan["schedule"]).read_text().splitlines()
assert len(rows) == 2 and all(_Action.from_str(cell) for row in rows for cell in row.split(","))
EOF
