#include "experiments/plans/case_limits.h"

#include <algorithm>

#include "planner/ir/request/check.h"

namespace pfeife {

std::vector<DeviceId> devices_of(const Request& config) {
  std::vector<DeviceId> devices = config.plan.devices;
  for (std::size_t rank = devices.size(); rank < config.devices; ++rank)
    devices.emplace_back(static_cast<std::int64_t>(rank));
  devices.resize(config.devices);
  return devices;
}

std::optional<AllocatorSettings> allocator_of(const Request& config, const Cluster& cluster) {
  const auto is_gpu = [](const DeviceKind& kind) { return kind.type == DeviceType::Gpu; };
  if (!std::ranges::all_of(cluster.kinds, is_gpu)) return std::nullopt;
  return config.plan.allocator;
}

std::int64_t communicators(const Request& config) {
  return (config.devices > 1 ? 1 : 0) + (config.replicas.count > 1 ? 1 : 0);
}

Bytes memory_limit(const Request& config, const Cluster& cluster, DeviceId device) {
  const DeviceKind& kind = cluster.kind(device);
  const Bytes usable = kind.memory - config.plan.reserve.value_or(kind.reserve);
  const double margin =
      memory_margin(config.plan.memory_margin, allocator_of(config, cluster).has_value());
  return Bytes{static_cast<std::int64_t>((1 - margin) * static_cast<double>(usable.value))};
}

std::vector<Bytes> memory_limits(const Request& config, const Cluster& cluster,
                                 const std::vector<DeviceId>& devices) {
  std::vector<Bytes> limits;
  for (const DeviceId device : devices) limits.push_back(memory_limit(config, cluster, device));
  return limits;
}

std::vector<Bytes> memory_limits(const Request& config, const Cluster& cluster) {
  return memory_limits(config, cluster, devices_of(config));
}

std::optional<Partition> given_cuts(const Request& config, const Layers& layers) {
  const PlanSettings& plan = config.plan;
  if (plan.cuts == PlanSettings::Cuts::Search) return std::nullopt;
  Partition partition{plan.given_cuts};
  if (plan.cuts == PlanSettings::Cuts::EachLayer)
    for (std::size_t i = 0; i + 1 < layers.size(); ++i)
      if (layers.layers[i].no_cut_after.empty())
        partition.cuts.push_back(static_cast<std::int32_t>(i));
  if (const std::string reason = illegal_because(layers, partition); !reason.empty())
    throw RefusedWish("plan.cuts", "plan.cuts: " + reason);
  return partition;
}

}  // namespace pfeife
