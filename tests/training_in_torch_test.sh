#!/usr/bin/env bash
# Training by pfeife-run against a loop in PyTorch that knows nothing of pipelines: two ranks, samples shuffled each epoch in
# DistributedSampler's order (torch.randperm of a generator with the seed plus the epoch), Adam with other betas, eps and weight
# decay, a rate of LinearLR and CosineAnnealingLR. The training is interrupted in the middle of an epoch and continues.
# Usage: training_in_torch_test.sh PFEIFE_RUN REPOSITORY. Skipped (77) without a Python that has torch: $TORCH_PYTHON, that of
# build/venv, or python3.
set -euo pipefail
run=$1 repository=$2 python=${TORCH_PYTHON:-python3}
[[ -n ${TORCH_PYTHON:-} || ! -x $repository/build/venv/bin/python3 ]] || python=$repository/build/venv/bin/python3
if ! "$python" -c 'import torch' 2> /dev/null; then
  echo "skipped: $python has no torch; set TORCH_PYTHON"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHONPATH=$repository/configs/models
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > "$folder/s.csv"

# 22 samples in steps of 4: the last step of an epoch is smaller.
mkdir "$folder/data"
"$python" - "$folder/data" << 'EOF2'
import pathlib, struct, sys

import torch

for name, seed in (("ids", 1), ("labels", 2)):
    rows = torch.randint(0, 61, (22, 12), generator=torch.Generator().manual_seed(seed))
    header = str({"descr": "<i8", "fortran_order": False, "shape": (22, 12)})
    header += " " * (64 - (10 + len(header) + 1) % 64) + "\n"
    pathlib.Path(f"{sys.argv[1]}/{name}.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(rows.untyped_storage()))
    torch.save(rows, f"{sys.argv[1]}/{name}.pt")
EOF2

# train SAVE STEPS MORE...
train() {
  local save=$1 steps=$2
  shift 2
  "$run" train --model "$repository/configs/models/tiny_gpt.pt2" --schedule "$folder/s.csv" --cuts 30 --fp64 \
    --data "$folder/data" --save "$save" --steps "$steps" "$@" > "$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
}
train "$folder/unchanged" 1 --learning-rate 0
train "$folder/save" 8 --shuffle --seed 11 --learning-rate 0.02 --warmup-steps 4 --lr-schedule cosine --lr-decay-steps 16 \
  --min-lr 0.002 --beta1 0.8 --beta2 0.97 --eps 1e-4 --weight-decay 0.05 --out "$folder/first.csv"
train "$folder/save" 9 --resume "$folder/save" --out "$folder/second.csv"

"$python" - "$folder" << 'EOF2'
import csv, json, math, pathlib, struct, sys, warnings

import torch
from tiny_models import TinyGpt
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

warnings.filterwarnings("ignore", category=UserWarning)  # SequentialLR's, of its own calls
folder = pathlib.Path(sys.argv[1])


def tensors_of(file):
    data = pathlib.Path(file).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[8 + size:][slice(*t["data_offsets"])]), dtype=torch.float64)
            .reshape(t["shape"]) for name, t in header.items()}


def state(save):
    return {name: tensor for file in (folder / save).glob("step-*/model-*.safetensors")
            for name, tensor in tensors_of(file).items()}


model = TinyGpt().double()
model.load_state_dict(state("unchanged"), strict=False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.8, 0.97), eps=1e-4, weight_decay=0.05)
rates = SequentialLR(optimizer, [LinearLR(optimizer, 1 / 4, 1, 3), CosineAnnealingLR(optimizer, 16 - 4, 0.002)], [4])
rows = {name: torch.load(folder / f"data/{name}.pt") for name in ("ids", "labels")}
expected = []
for epoch in range(3):
    order = torch.randperm(22, generator=torch.Generator().manual_seed(11 + epoch))
    for step in order.split(4):
        if len(expected) == 17:
            break
        loss = model(**{name: tensor[step] for name, tensor in rows.items()})
        rate = optimizer.param_groups[0]["lr"] if len(expected) < 16 else 0.002
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.step()
        expected.append((loss.item(), rate))
found = [(float(row["loss"]), float(row["learning_rate"])) for name in ("first", "second")
         for row in csv.DictReader((folder / f"{name}.csv").open())]
assert len(found) == len(expected) == 17, (len(found), len(expected))
for step, (ours, torchs) in enumerate(zip(found, expected)):
    assert all(math.isclose(a, b, rel_tol=1e-10) for a, b in zip(ours, torchs)), (step, ours, torchs)
for name, tensor in state("save").items():
    difference = (tensor - model.state_dict()[name]).abs().max().item()
    assert difference < 1e-10, (name, difference)
EOF2
