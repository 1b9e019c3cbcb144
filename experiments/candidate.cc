#include "experiments/candidate.h"

#include "planner/cost/stage_costs.h"
#include "planner/ir/error.h"
#include "planner/ir/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {

Placement placed(Placement placement, const CaseConfig& config) {
  placement.device_of_rank = devices_of(config);
  return placement;
}

Candidate candidate_of(std::string plan, const ScheduleSpec& spec, Partition partition,
                       const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                       std::vector<bool> recompute, const std::optional<Schedule>& order) {
  Candidate candidate{.plan = std::move(plan),
                      .reason = "",
                      .spec = spec,
                      .partition = std::move(partition),
                      .placement = placed(placement_for(spec), config),
                      .schedule = {},
                      .recompute = std::move(recompute)};
  const StageCosts costs =
      stage_costs(layers, candidate.partition, candidate.placement, cluster, candidate.recompute);
  candidate.schedule = lower(order ? *order : generate(spec), costs, candidate.placement);
  return candidate;
}

std::vector<DeviceId> devices_of(const CaseConfig& config) {
  std::vector<DeviceId> devices = config.plan.devices;
  for (std::size_t rank = devices.size(); rank < config.devices; ++rank)
    devices.emplace_back(static_cast<std::int64_t>(rank));
  devices.resize(config.devices);
  return devices;
}

Bytes memory_limit(const CaseConfig& config, const Cluster& cluster, DeviceId device) {
  const DeviceKind& kind = cluster.kind(device);
  return kind.memory - config.plan.reserve.value_or(kind.reserve);
}

std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster,
                                 const std::vector<DeviceId>& devices) {
  std::vector<Bytes> limits;
  for (const DeviceId device : devices) limits.push_back(memory_limit(config, cluster, device));
  return limits;
}

std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster) {
  return memory_limits(config, cluster, devices_of(config));
}

std::optional<Partition> given_cuts(const CaseConfig& config, const Layers& layers) {
  const PlanSettings& plan = config.plan;
  if (plan.cuts == PlanSettings::Cuts::Search) return std::nullopt;
  Partition partition{plan.given_cuts};
  if (plan.cuts == PlanSettings::Cuts::EachLayer)
    for (std::size_t i = 0; i + 1 < layers.size(); ++i)
      if (layers.layers[i].no_cut_after.empty())
        partition.cuts.push_back(static_cast<std::int32_t>(i));
  if (const std::string reason = illegal_because(layers, partition); !reason.empty())
    throw ConfigError(plan.cuts_where, "plan.cuts: " + reason);
  return partition;
}

}  // namespace pfeife
