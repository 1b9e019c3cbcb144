#!/usr/bin/env bash
# Checkpoints of pfeife-run in other hands. By a reader of safetensors of its own: a training that changes nothing saves the
# names, types, shapes and bytes of the archive's weights, a tied one once. In PyTorch: the lines of runtime/README.md put a
# checkpoint into the module, tied head included, whose loss is then that of pfeife-run's next step.
# Usage: checkpoint_in_torch_test.sh PFEIFE_RUN REPOSITORY. Skipped (77) without a Python, python3 or $TORCH_PYTHON; the second
# part without one that has torch, which it says.
set -euo pipefail
run=$1 repository=$2 python=${TORCH_PYTHON:-python3}
[[ -n ${TORCH_PYTHON:-} || ! -x $repository/build/venv/bin/python3 ]] || python=$repository/build/venv/bin/python3
if ! "$python" -c '' 2> /dev/null; then
  echo "skipped: there is no $python"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' > "$folder/s.csv"

# train MODEL CUT SAVE MORE...
train() {
  local model=$1 cut=$2 save=$3
  shift 3
  "$run" train --model "$model" --schedule "$folder/s.csv" --cuts "$cut" --save "$save" "$@" > "$folder/said" ||
    { cat "$folder/said"; exit 1; }
}

cat > "$folder/stored.py" << 'EOF2'
import json, pathlib, struct, zipfile


def tensors_of(file):
    """Name to (type, shape, bytes) of a safetensors file."""
    data = pathlib.Path(file).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + size:][slice(*t["data_offsets"])]) for name, t in header.items()}


def archived(file):
    """Name to (where it lies, shape, bytes) of an archive of torch.export: its state_dict."""
    with zipfile.ZipFile(file) as archive:
        folder = archive.namelist()[0].split("/")[0] + "/data/weights/"
        config = json.loads(archive.read(folder + "model_weights_config.json"))["config"]
        return {name: (t["path_name"], [s["as_int"] for s in t["tensor_meta"]["sizes"]],
                       archive.read(folder + t["path_name"])) for name, t in config.items()}


def saved(folder):
    files = sorted(pathlib.Path(folder).glob("step-*/model-*.safetensors"))
    assert len(files) == 2, files
    found = {}
    for file in files:
        for name, tensor in tensors_of(file).items():
            assert name not in found, name
            found[name] = tensor
    return found


def save_array(file, rows):
    header = str({"descr": "<i8", "fortran_order": False, "shape": (len(rows), len(rows[0]))})
    header += " " * (64 - (10 + len(header) + 1) % 64) + "\n"
    flat = [number for row in rows for number in row]
    pathlib.Path(file).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                                   + struct.pack(f"<{len(flat)}q", *flat))
EOF2
export PYTHONPATH=$folder:$repository/configs/models

train "$repository/tests/data/models/torch_saved.pt2" 1 "$folder/unchanged" --steps 1 --learning-rate 0
train "$repository/configs/models/tiny_gpt.pt2" 30 "$folder/tied" --steps 1
"$python" - "$repository" "$folder" << 'EOF2'
import sys

from stored import archived, saved

repository, folder = sys.argv[1:]
expected, found = archived(f"{repository}/tests/data/models/torch_saved.pt2"), saved(f"{folder}/unchanged")
assert found == {name: ("F32", shape, data) for name, (_, shape, data) in expected.items()}, found.keys()

expected, found = archived(f"{repository}/configs/models/tiny_gpt.pt2"), saved(f"{folder}/tied")
assert {n: s for n, (_, s, _) in found.items()}.items() <= {n: s for n, (_, s, _) in expected.items()}.items()
places = [expected[name][0] for name in found]
assert len(places) == len(set(places)) and set(places) == {place for place, _, _ in expected.values()}, places
assert len(found) < len(expected)  # the head is tied
EOF2

if ! "$python" -c 'import torch' 2> /dev/null; then
  echo "skipped in part: $python has no torch; set TORCH_PYTHON"
  exit 0
fi
mkdir "$folder/data"
"$python" - "$folder/data" << 'EOF2'
import random, sys

from stored import save_array

for name in ("ids", "labels"):
    random.seed(name)
    save_array(f"{sys.argv[1]}/{name}.npy", [[random.randrange(61) for _ in range(12)] for _ in range(64)])
EOF2
train "$repository/configs/models/tiny_gpt.pt2" 30 "$folder/trained" --steps 3 --data "$folder/data" --learning-rate 0.05
cp -r "$folder/trained" "$folder/next"
train "$repository/configs/models/tiny_gpt.pt2" 30 "$folder/next" --steps 1 --data "$folder/data" \
  --resume "$folder/next" --out "$folder/next.csv"
"$python" - "$repository" "$folder" << 'EOF2'
import pathlib, re, sys, types

import torch
from stored import tensors_of
from tiny_models import TinyGpt

repository, folder = map(pathlib.Path, sys.argv[1:])
try:
    import safetensors.torch
except ImportError:  # its load_file, which the lines import

    def load_file(file):
        return {name: torch.frombuffer(bytearray(data), dtype={"F32": torch.float32}[dtype]).reshape(shape)
                for name, (dtype, shape, data) in tensors_of(file).items()}

    sys.modules["safetensors"] = types.ModuleType("safetensors")
    sys.modules["safetensors.torch"] = types.ModuleType("safetensors.torch")
    sys.modules["safetensors.torch"].load_file = load_file

lines = re.search(r"```python\n(.*?load_state_dict.*?)```", (repository / "runtime/README.md").read_text(), re.S)[1]
model = TinyGpt()
rows = {name: torch.frombuffer(bytearray((folder / f"data/{name}.npy").read_bytes()[-64 * 12 * 8:]), dtype=torch.int64)
        .reshape(64, 12)[12:16] for name in ("ids", "labels")}
before = model(**rows).item()
exec(lines.replace("CKPT", str(folder / "trained")))
assert model.head.weight is model.tokens.weight
loss = model(**rows).item()
expected = float((folder / "next.csv").read_text().splitlines()[1].split(",")[2])
assert abs(loss - expected) < 1e-5 * expected < abs(before - expected), (before, loss, expected)
EOF2
