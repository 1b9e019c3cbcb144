#!/usr/bin/env bash
# A plan's exports, read by torch.distributed.pipelining itself: split_points.json cuts tiny_mlp where the plan does, and
# every cell of schedule_torch.csv is an action; the script beside them runs chains and residual blocks on two ranks with
# the losses and gradients of the unsplit module, and what torch cannot run is refused. Usage: torch_export_test.sh PFEIFE_EXP REPOSITORY. Skipped (77) without a
# Python that has torch: $TORCH_PYTHON, that of build/venv, or python3.
set -euo pipefail
exp=$1 repository=$2 python=${TORCH_PYTHON:-python3}
[[ -n ${TORCH_PYTHON:-} || ! -x $repository/build/venv/bin/python3 ]] || python=$repository/build/venv/bin/python3
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


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


def chain():
    return nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(6)))


def residual():
    return nn.Sequential(*(Block() for _ in range(8)))


class WithLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return F.mse_loss(self.net(x), y)


class Bottleneck(nn.Module):
    """As a ResNet's: one activation that is called three times, and a shortcut."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 8, 1)
        self.norm1, self.norm2, self.norm3 = nn.GroupNorm(2, 4), nn.GroupNorm(2, 4), nn.GroupNorm(2, 8)
        self.relu = nn.ReLU()

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        return self.relu(self.norm3(self.conv3(y)) + x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.qkv, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm2, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Vit(nn.Module):
    """Patches, a class token, positions, blocks, a head on the token."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))
        self.blocks = nn.Sequential(*(Attention() for _ in range(6)))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Gpt(nn.Module):
    """The model itself adds, as TinyGpt of the shipped models does; its modules are in a list."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(32, 8)
        self.layers = nn.ModuleList(nn.ModuleDict({"norm": nn.LayerNorm(8), "up": nn.Linear(8, 32), "down": nn.Linear(32, 8)})
                                    for _ in range(6))
        self.head = nn.Linear(8, 8)

    def forward(self, ids):
        h = self.tokens(ids)
        for layer in self.layers:
            h = h + layer["down"](F.gelu(layer["up"](layer["norm"](h))))
        return self.head(h)


def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *(Bottleneck() for _ in range(6)), nn.Flatten(), nn.Linear(512, 8))


def resnet_parts(batch):
    return resnet(), torch.randn(batch, 3, 8, 8), F.mse_loss, torch.randn(batch, 8)


def vit_parts(batch):
    return Vit(), torch.randn(batch, 3, 8, 8), F.mse_loss, torch.randn(batch, 8)


def gpt_parts(batch):
    return Gpt(), torch.randint(32, (batch, 4)), F.mse_loss, torch.randn(batch, 4, 8)


def for_export(parts, batch):
    net, x, _, y = parts(batch)
    return WithLoss(net), {"x": x, "y": y}


def resnet_for_export(batch=4):
    return for_export(resnet_parts, batch)


def vit_for_export(batch=4):
    return for_export(vit_parts, batch)


def gpt_for_export(batch=4):
    return for_export(gpt_parts, batch)


def chain_for_export(batch=4):
    return WithLoss(chain()), {"x": torch.zeros(batch, 8), "y": torch.zeros(batch, 8)}


def residual_for_export(batch=4):
    return WithLoss(residual()), {"x": torch.zeros(batch, 8), "y": torch.zeros(batch, 8)}


def chain_parts(batch):
    return chain(), torch.randn(batch, 8), F.mse_loss, torch.randn(batch, 8)


def residual_parts(batch):
    return residual(), torch.randn(batch, 8), F.mse_loss, torch.randn(batch, 8)
EOF
for model in chain residual resnet vit gpt; do
  "$python" "$repository/configs/models/export_models.py" --module "$folder/wrapped.py:${model}_for_export" --name $model \
    --out "$folder" > /dev/null
done

# plan MODEL FAMILY CUTS: a plan of two stages on each of two ranks, in $plan. CUTS may be followed by more keys of it.
plan() {
  cat > "$folder/wrapped.yaml" << EOF
version: 1
model: $1.pt2
cluster: $repository/configs/clusters/laptop.yaml
cases: {devices: 2, microbatches: 4}
plan: {families: [$2], stages_per_rank: 2, cuts: $3}
baselines: []
engines: estimate
EOF
  plan=$folder/${1##*/},$2,${3//[^a-z0-9]/_}
  "$exp" "$folder/wrapped.yaml" --out "$plan" --quiet > /dev/null
  plan=$(echo "$plan"/*/planned)
}

# runs MODEL FAMILY CUTS: its losses and gradients in torch are those of the unsplit module.
runs() {
  plan "$@"
  (cd "$folder" && "$python" -m torch.distributed.run --standalone --nproc-per-node 2 "$plan/run_in_torch.py" \
    "wrapped.py:$1_parts" --prefix net. --check 2> log) > "$folder/said" || { cat "$folder/log"; exit 1; }
  grep -q 'as unsplit' "$folder/said" || { echo "$*: torch printed no loss"; exit 1; }
}
runs chain interleaved_1f1b search
runs chain zbv_greedy search
runs chain zb1p search
runs chain dualpipev search
runs residual interleaved_1f1b '[10,12,24]'
# Between blocks a residual is no hindrance, whatever the family.
for model in residual resnet vit gpt; do runs $model zb1p 'search, for: torch'; done
runs residual dualpipev 'search, for: torch'

# refused MODEL FAMILY CUTS REASON: there is no schedule, for this reason.
refused() {
  plan "$1" "$2" "$3"
  [[ ! -e $plan/run_in_torch.py && ! -e $plan/schedule_torch.csv ]] || { echo "$*: not refused"; exit 1; }
  grep -q "\"schedule_why_not\": .*$4" "$plan/split_points.json" || { echo "$*: no such reason"; exit 1; }
}
plan "$repository/configs/models/tiny_gpt" interleaved_1f1b 'search, for: torch'
grep -q '"schedule_why_not": .*is shared by stages' "$plan/split_points.json" || { echo "tied parameters: not refused"; exit 1; }
refused residual interleaved_1f1b '[8,10,24]' 'torch sends values to the next stage only'
refused residual zbv '[9,19,29]' 'has been detached in-place'
refused residual dualpipev '[9,19,29]' 'has been detached in-place'
