// launch.sh of an export: one command on each host, by torchrun. Hosts come from the environment;
// what the environment has to say and does not ends the script with the variable to set.
#include <algorithm>

#include "planner/io/plan/plan_writers.h"

namespace pfeife {
namespace {

constexpr const char* kHosts = R"sh(
DEVICES=$((GPUS_PER_NODE * NNODES))
if ((DEVICES != PLANNED)); then
  stop "the plan is for $PLANNED devices, found $NNODES hosts of $GPUS_PER_NODE; set NNODES and GPUS_PER_NODE"
fi
NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-}}
MASTER_ADDR=${MASTER_ADDR:-}
if ((NNODES == 1)); then
  NODE_RANK=${NODE_RANK:-0} MASTER_ADDR=${MASTER_ADDR:-localhost}
elif [[ -z $MASTER_ADDR && -n ${SLURM_JOB_NODELIST:-} ]]; then
  MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
  MASTER_ADDR=${MASTER_ADDR%%$'\n'*}
fi
[[ -n $NODE_RANK ]] || stop "the number of this host is missing; set NODE_RANK (0 to $((NNODES - 1)))"
[[ -n $MASTER_ADDR ]] || stop "the first host is missing; set MASTER_ADDR to its name on every host"
MASTER_PORT=${MASTER_PORT:-29500}
STEPS=${STEPS:-20}
)sh";

constexpr const char* kTorchrun = R"sh(
exec torchrun --nnodes "$NNODES" --nproc-per-node "$GPUS_PER_NODE" --node-rank "$NODE_RANK" \
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" \
  )sh";

/// Devices of a host: the cluster's, fewer where the plan has fewer or they do not divide.
std::int64_t devices_a_host(const PlanToExport& planned) {
  const std::int64_t devices = planned.run.mesh.devices();
  const std::int64_t usual = planned.devices_per_host > 0 ? planned.devices_per_host : 8;
  std::int64_t host = std::min(devices, usual);
  while (devices % host != 0) --host;
  return host;
}

}  // namespace

ExportedFile launch_script(const PlanToExport& planned, const Launch& launch) {
  const std::int64_t devices = planned.run.mesh.devices(), host = devices_a_host(planned);
  std::string text = "#!/usr/bin/env bash\n" +
                     commented({"Trains " + planned.layers.name + " with " + launch.title +
                                " by the plan: " + to_string(planned.run.mesh) +
                                ". Run it on each host; arguments are passed on."}) +
                     "#   GPUS_PER_NODE, NNODES     devices of a host, hosts (" +
                     std::to_string(host) + ", " + std::to_string(devices / host) +
                     ")\n"
                     "#   NODE_RANK, MASTER_ADDR    this host's number, the first host (Slurm's)\n"
                     "#   MASTER_PORT, STEPS        (29500, 20)\n";
  for (const std::string& variable : launch.variables) text += "#   " + variable + "\n";
  text +=
      "set -euo pipefail\n"
      "stop() {\n"
      "  echo \"launch.sh: $*\" >&2\n"
      "  exit 2\n"
      "}\n"
      "HERE=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\n"
      "PLANNED=" +
      std::to_string(devices) + "\nGPUS_PER_NODE=${GPUS_PER_NODE:-" + std::to_string(host) +
      "}\nNNODES=${NNODES:-$(((PLANNED + GPUS_PER_NODE - 1) / GPUS_PER_NODE))}";
  text += kHosts + launch.settings + kTorchrun + launch.program + " \"$@\"\n";
  return {"launch.sh", std::move(text)};
}

}  // namespace pfeife
