#!/usr/bin/env bash
# Plans in the words of frameworks, each read by that framework's own parser (export_test.py), which pip brings; what pip
# does not bring is said. Usage: export_test.sh PFEIFE_EXP REPOSITORY BUILD_FOLDER. Skipped (77) without a Python that has
# torch ($TORCH_PYTHON, that of build/venv, or python3), or where pip reaches no packages.
set -euo pipefail
exp=$1 repository=$2 kept=$3/frameworks python=${TORCH_PYTHON:-python3}
[[ -n ${TORCH_PYTHON:-} || ! -x $repository/build/venv/bin/python3 ]] || python=$repository/build/venv/bin/python3
if ! "$python" -c 'import torch.distributed.pipelining.schedules' 2> /dev/null; then
  echo "skipped: $python has no torch.distributed.pipelining; set TORCH_PYTHON"
  exit 77
fi
mkdir -p "$kept"
pip() { "$python" -m pip "$1" -q --disable-pip-version-check "${@:2}" > "$kept/log" 2>&1; }
# Without dependencies, of which no parser needs more than this.
for package in packaging tyro==1.0.17 docstring_parser typeguard typing_extensions pyyaml protobuf wheel setuptools \
  megatron-core==0.16.1 torchtitan==0.3.0 nemo-automodel==0.7.0; do
  [[ -e $kept/${package%%=*}/ready ]] && continue
  if ! pip install --no-deps --only-binary :all: --target "$kept/${package%%=*}" "$package"; then
    echo "pip brings no $package"
    continue
  fi
  touch "$kept/${package%%=*}/ready"
done
if [[ ! -e $kept/packaging/ready ]]; then
  echo "skipped: pip reaches no packages"
  exit 77
fi
# There are but sources of it, which need not be built.
if [[ ! -e $kept/deepspeed/ready ]]; then
  export PYTHONPATH=$kept/wheel:$kept/setuptools
  if DS_BUILD_OPS=0 pip download --no-deps --no-binary :all: --no-build-isolation -d "$kept/deepspeed" deepspeed==0.19.8; then
    tar xzf "$kept"/deepspeed/*.tar.gz -C "$kept/deepspeed" --strip-components 1 && touch "$kept/deepspeed/ready"
  else
    echo "pip brings no deepspeed"
  fi
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# export NAME FRAMEWORK PLAN: files of the plan's folder, and beside them what was said.
export_plan() {
  "$exp" export "$3" --for "$2" --out "$folder/$1" > "$folder/$1.txt"
  cp "$3/plan.yaml" "$3/schedule.csv" "$folder/$1/"
}
# archive NAME FRAMEWORK KEYS: Llama 2 7B's archive on four ranks.
archive() {
  cat > "$folder/$1.yaml" << END
version: 1
model: $repository/configs/models/llama2_7b.pt2
cluster: $repository/configs/clusters/a100_sxm4_80gb_x8.yaml
training: {precision: bf16_amp}
cases: {devices: 4, microbatches: 8}
plan: {for: $2, iterations: 1, $3}
baselines: []
engines: estimate
END
  "$exp" "$folder/$1.yaml" --out "$folder/$1.out" --quiet > /dev/null
  export_plan "$1" "$2" "$(echo "$folder/$1.out"/*/planned)"
}
# mesh NAME FRAMEWORK KEYS: an architecture on 16 devices.
mesh() {
  cat > "$folder/$1.yaml" << END
version: 1
model: $repository/configs/architectures/llama3_8b.yaml
cluster: $repository/configs/clusters/h100_sxm_hosts.yaml
training: {global_batch: 32, microbatch_size: 1}
parallel: {devices: 16, tp: 2, pp: 4, dp: 2, $3}
plan: {for: $2, iterations: 1}
baselines: []
engines: estimate
END
  "$exp" "$folder/$1.yaml" --out "$folder/$1.out" --quiet > /dev/null
  export_plan "$1" "$2" "$(echo "$folder/$1.out"/devices*/planned)"
}
archive megatron_archive megatron 'families: [1f1b], recompute: full'
mesh megatron_mesh megatron 'zero: 1, stages_per_rank: [2], recompute: none'
archive torchtitan_recompute torchtitan 'families: [zbv], recompute: full'
mesh torchtitan_mesh torchtitan 'zero: 3, stages_per_rank: [2], recompute: none'
archive automodel_archive automodel 'families: [zb_greedy], stages_per_rank: 2, recompute: none'
mesh automodel_mesh automodel 'zero: 3, stages_per_rank: [1], recompute: none'
archive deepspeed_archive deepspeed 'recompute: full'
mesh deepspeed_mesh deepspeed 'zero: 1, stages_per_rank: [1], recompute: none'
export_plan chakra_archive chakra "$(echo "$folder"/automodel_archive.out/*/planned)"
export_plan chakra_mesh chakra "$(echo "$folder"/torchtitan_mesh.out/devices*/planned)"
KEPT=$kept FOLDER=$folder "$python" "$repository/tests/export_test.py"
