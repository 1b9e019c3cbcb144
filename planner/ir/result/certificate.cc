#include "planner/ir/result/certificate.h"

#include <algorithm>

namespace pfeife {
namespace {

void keep_devices(const Cluster& cluster, const std::vector<DeviceId>& device_of_rank,
                  Certificate& certificate) {
  std::vector<DeviceId> devices = device_of_rank;
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const DeviceKind& kind : cluster.kinds) {
    DeviceKind& kept = certificate.cluster.kinds.emplace_back();
    kept.stage_overhead = kind.stage_overhead, kept.iteration_overhead = kind.iteration_overhead;
    // What clipping takes:
    kept.type = kind.type, kept.kernel_overhead = kind.operator_time();
    kept.memory_bandwidth = {kind.memory_bandwidth.value / kind.compute_factor};
    kept.memory_efficiency = kind.memory_efficiency;
  }
  for (const DeviceId from : devices) {
    certificate.cluster.kind_of_device.push_back(cluster.kind_of_device[from.index()]);
    for (const DeviceId to : devices) {
      Path path = cluster.path(from, to);
      if (!path.links.empty()) path.links = {0};  // which ones matters to the simulator alone
      certificate.cluster.paths.push_back(std::move(path));
    }
  }
  for (const DeviceId device : device_of_rank)
    certificate.device_of_rank.emplace_back(std::ranges::find(devices, device) - devices.begin());
}

}  // namespace

Certificate certified_problem(const Layers& layers, const Cluster& cluster,
                              const std::vector<DeviceId>& device_of_rank,
                              const std::vector<Bytes>& memory_limit, Recompute recompute,
                              StepNorm norm) {
  Certificate certificate{.layers = layers};
  Layers& kept = certificate.layers;
  kept.name.clear(), kept.notes.clear();
  for (Layer& layer : kept.layers) {
    layer.name.clear(), layer.module_path.clear(), layer.nodes.clear();
    layer.model_input = Bytes{0};
    if (!layer.no_cut_after.empty()) layer.no_cut_after = "no cut";
  }
  for (LayerValue& value : kept.values)
    value.name.clear(), value.waiting_gradient = Bytes{0}, value.kept_for_weight.reset(),
                        value.producer_keeps_gradient = false;
  for (LayerParameter& parameter : kept.parameters)
    parameter.name.clear(), parameter.gradients_wait = true;
  certificate.cluster.digest = cluster.digest;
  keep_devices(cluster, device_of_rank, certificate);
  certificate.memory_limit = memory_limit;
  certificate.recompute = recompute, certificate.norm = norm;
  return certificate;
}

}  // namespace pfeife
