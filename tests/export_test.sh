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
# Without dependencies, of which no parser needs more than this; export_test.py makes up the rest.
for package in packaging tyro==1.0.17 docstring_parser typeguard typing_extensions pyyaml protobuf wheel setuptools \
  spmd_types==0.2.3 torchdata==0.11.0 einops megatron-core==0.16.1 torchtitan==0.3.0 nemo-automodel==0.7.0; do
  [[ -e $kept/${package%%=*}/ready ]] && continue
  if ! pip install --no-deps --only-binary :all: --target "$kept/${package%%=*}" "$package"; then
    echo "pip brings no $package"
    continue
  fi
  touch "$kept/${package%%=*}/ready"
done
# Builds the models of config.json, with what it needs.
if [[ ! -e $kept/transformers/ready ]]; then
  pip install --only-binary :all: --target "$kept/transformers" transformers==5.24.0 && touch "$kept/transformers/ready" ||
    echo "pip brings no transformers"
fi
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
# mesh NAME FRAMEWORK KEYS [ARCHITECTURE [DEVICES]]: an architecture on hosts of eight; KEYS end with what
# is recomputed.
mesh() {
  cat > "$folder/$1.yaml" << END
version: 1
model: $repository/configs/architectures/${4:-llama3_8b.yaml}
cluster: $repository/configs/clusters/h100_sxm_hosts.yaml
training: {global_batch: 32, microbatch_size: 1, sequence: 2048}
parallel: {devices: ${5:-16}, pp: 4, $3}
plan: {for: $2, iterations: 1, recompute: ${3##*recompute: }}
baselines: []
engines: estimate
END
  "$exp" "$folder/$1.yaml" --out "$folder/$1.out" --quiet > /dev/null
  export_plan "$1" "$2" "$(echo "$folder/$1.out"/devices*/planned)"
}
archive megatron_archive megatron 'families: [1f1b], recompute: full'
mesh megatron_mesh megatron 'tp: 2, dp: 2, zero: 1, stages_per_rank: [2], recompute: none'
mesh megatron_llama3_70b megatron 'tp: 8, dp: 1, zero: 1, stages_per_rank: [1], recompute: full' llama3_70b.yaml 32
mesh megatron_gpt_22b megatron 'tp: 4, dp: 1, zero: 0, stages_per_rank: [1], recompute: attention' gpt_22b.yaml
mesh megatron_mixtral megatron 'tp: 2, dp: 4, ep: 4, zero: 1, stages_per_rank: [1], recompute: full' mixtral_8x7b.yaml 32
mesh megatron_qwen3_moe megatron 'tp: 1, dp: 4, ep: 4, zero: 1, stages_per_rank: [2], recompute: none' qwen3_30b_a3b.yaml
archive torchtitan_recompute torchtitan 'families: [zbv], recompute: full'
mesh torchtitan_mesh torchtitan 'tp: 2, dp: 2, zero: 3, stages_per_rank: [2], recompute: none'
mesh torchtitan_llama3_70b torchtitan 'tp: 8, dp: 1, zero: 0, stages_per_rank: [1], recompute: full' llama3_70b.yaml 32
mesh torchtitan_mixtral torchtitan 'tp: 1, dp: 4, ep: 4, zero: 3, stages_per_rank: [1], recompute: full' mixtral_8x7b.yaml
mesh torchtitan_qwen3_moe torchtitan 'tp: 1, dp: 4, ep: 2, zero: 3, stages_per_rank: [2], recompute: full' qwen3_30b_a3b.yaml
archive automodel_archive automodel 'families: [zb_greedy], stages_per_rank: 2, recompute: none'
mesh automodel_mesh automodel 'tp: 2, dp: 2, zero: 3, stages_per_rank: [1], recompute: none'
mesh automodel_qwen3_moe automodel 'tp: 1, dp: 4, ep: 4, zero: 3, stages_per_rank: [2], recompute: full' qwen3_30b_a3b.yaml
archive deepspeed_archive deepspeed 'recompute: full'
mesh deepspeed_mesh deepspeed 'tp: 1, dp: 4, zero: 1, stages_per_rank: [1], recompute: none'
mesh deepspeed_qwen3_moe deepspeed 'tp: 1, dp: 4, ep: 1, zero: 1, stages_per_rank: [1], recompute: full' qwen3_30b_a3b.yaml
export_plan chakra_archive chakra "$(echo "$folder"/automodel_archive.out/*/planned)"
export_plan chakra_mesh chakra "$(echo "$folder"/torchtitan_mesh.out/devices*/planned)"

# Mistakes of a mesh's plan.for are errors of the user's file, in its line.
wrong() {
  cat > "$folder/wrong.yaml" << END
version: 1
model: $repository/configs/architectures/llama3_8b.yaml
cluster: $repository/configs/clusters/h100_sxm_hosts.yaml
training: {global_batch: 32, microbatch_size: 1}
parallel: {devices: 16, pp: 4, $1}
plan: {$2}
END
  local message
  if message=$("$exp" "$folder/wrong.yaml" --out "$folder/wrong" --quiet 2>&1); then echo "$1 $2 is taken" && exit 1; fi
  grep -qE "^pfeife-exp: $folder/wrong.yaml:$3:[0-9]+: $4" <<< "$message" || { echo "no line $3, $4 in: $message" && exit 1; }
}
wrong 'tp: 2' 'for: megatorn' 6 'plan.for: '
wrong 'tp: 2' 'for: megatron, families: [zbv]' 6 'plan.families: Megatron-LM does not run zbv'
wrong 'tp: 2' 'for: torchtitan, recompute: attention' 6 'plan.recompute: torchtitan'
wrong 'tp: 2' 'for: megatron, cuts_at: layers' 6 'plan.cuts_at: '
wrong 'tp: 2, zero: 1' 'for: torchtitan' 5 'parallel.zero: a plan for torchtitan has no ZeRO 1; use 0 or 3'
wrong 'tp: 2' 'for: deepspeed' 5 'parallel.tp: '
wrong 'tp: 1, cp: 2' 'for: deepspeed' 5 'parallel.cp: '

# A model that the framework does not have, and a plan that it does not run, are errors with reasons.
refuse() {
  local message
  if message=$("$exp" export "$1" --for "$2" --out "$folder/refused" 2>&1); then
    echo "$2 took $1" && exit 1
  fi
  grep -qF "$3" <<< "$message" || { echo "no '$3' in: $message" && exit 1; }
}
refuse "$(echo "$folder"/megatron_gpt_22b.out/devices*/planned)" torchtitan 'norm: layer'
refuse "$(echo "$folder"/torchtitan_recompute.out/*/planned)" megatron 'the schedule zbv: Megatron-LM runs'
refuse "$(echo "$folder"/megatron_mixtral.out/devices*/planned)" deepspeed 'tp 2'

# Each launch.sh with a torchrun and an srun of ours, which write what they are given.
mkdir "$folder/bin" "$folder/Megatron-LM"
touch "$folder/Megatron-LM/pretrain_gpt.py"
cat > "$folder/bin/torchrun" << 'END'
#!/usr/bin/env bash
printf '%s\n' "$@" > "$RECORD"
env > "$RECORD.env"
END
cat > "$folder/bin/scontrol" << 'END'
#!/usr/bin/env bash
printf 'host7\nhost8\n'
END
chmod +x "$folder"/bin/*
launch() {
  env PATH="$folder/bin:$PATH" RECORD="$1/launch.txt" MEGATRON_LM="$folder/Megatron-LM" "${@:2}" "$1/launch.sh" --own 1
}
for script in "$folder"/*/launch.sh; do
  plan=${script%/launch.sh}
  case $plan in
    *_archive | *_recompute)
      if launch "$plan" 2> "$folder/message"; then echo "$plan starts without its model" && exit 1; fi
      grep -qE 'set (MODEL_ARGS|TORCHTITAN_BASE|MODEL|LAYERS) ?' "$folder/message"
      launch "$plan" NODE_RANK=0 MODEL_ARGS='--hidden-size 4096' TORCHTITAN_BASE=a:b MODEL=llama LAYERS=own
      ;;
    *)
      if launch "$plan" 2> "$folder/message"; then echo "$plan starts without hosts" && exit 1; fi
      grep -q 'set NODE_RANK' "$folder/message"
      if launch "$plan" NODE_RANK=1 2> "$folder/message"; then echo "$plan starts without a first host" && exit 1; fi
      grep -q 'set MASTER_ADDR' "$folder/message"
      if launch "$plan" GPUS_PER_NODE=5 2> "$folder/message"; then echo "$plan starts on 20 devices" && exit 1; fi
      grep -q 'the plan is for [0-9]* devices, found' "$folder/message"
      launch "$plan" SLURM_NODEID=1 SLURM_JOB_NODELIST='host[7-8]' STEPS=7
      ;;
  esac
done
KEPT=$kept FOLDER=$folder "$python" "$repository/tests/export_test.py"
