#!/usr/bin/env bash
# A plan's exports, read by torch.distributed.pipelining itself: split_points.json cuts tiny_mlp where the plan does, and
# every cell of schedule_torch.csv is an action; the example of configs/README.md runs on two ranks and gives the unsplit
# module's loss. Usage: torch_export_test.sh PFEIFE_EXP REPOSITORY. Skipped (77) without a
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

cat > "$folder/wrapped.py" << 'EOF'
import torch
from torch import nn
from torch.nn import functional as F


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(6)))

    def forward(self, x, y):
        return F.mse_loss(self.net(x), y)


def wrapped(batch=4):
    return WithLoss(), {"x": torch.zeros(batch, 8), "y": torch.zeros(batch, 8)}
EOF
"$python" "$repository/configs/models/export_models.py" --module "$folder/wrapped.py:wrapped" --out "$folder" > /dev/null
{
  cat << 'EOF'
import json, pathlib, sys

import torch
import torch.distributed as dist
from torch.distributed.pipelining import SplitPoint, pipeline
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.nn.functional import mse_loss
from wrapped import WithLoss

torch.manual_seed(1)
module, x, y = WithLoss().net, torch.randn(16, 8), torch.randn(16, 8)
unsplit = mse_loss(module(x), y).item()
dist.init_process_group("gloo")
folder, rank, device, prefix, losses = pathlib.Path(sys.argv[1]), dist.get_rank(), torch.device("cpu"), "net.", []


def loss_fn(output, target):
    losses.append(mse_loss(output, target))
    return losses[-1]
EOF
  sed -n '/^### A plan in torch/,/^## /{/^```python/,/^```$/p}' "$repository/configs/README.md" | grep -v '^```'
  cat << 'EOF'
assert bool(losses) == stages[-1].is_last
if losses:
    assert len(losses) == 4 and abs(sum(losses).item() / 4 - unsplit) < 1e-6 * abs(unsplit), (losses, unsplit)
EOF
} > "$folder/example.py"
grep -o 'for stage in stages: stage\._[a-z0-9_]* = list' "$repository/configs/README.md" > "$folder/greet.py"
sed "/^schedule = /e cat $folder/greet.py" "$folder/example.py" > "$folder/example_v.py"

# runs FAMILY FILE: a plan of the family, two stages on each of two ranks.
runs() {
  cat > "$folder/wrapped.yaml" << EOF
version: 1
model: wrapped.pt2
cluster: $repository/configs/clusters/laptop.yaml
cases: {devices: 2, microbatches: 4}
plan: {families: [$1], loops: 2}
baselines: []
engines: estimate
EOF
  "$exp" "$folder/wrapped.yaml" --out "$folder/$1" --quiet > /dev/null
  (cd "$folder" && "$python" -m torch.distributed.run --standalone --nproc-per-node 2 "$2" "$folder/$1"/*/planned)
}
runs interleaved_1f1b example.py
runs zbv_greedy example_v.py
