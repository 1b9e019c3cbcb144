// A plan whose times are not known yet, and what every way to one needs of its case.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/cluster.h"
#include "planner/ir/layers.h"
#include "planner/ir/plan.h"

namespace pfeife {

/// A plan whose times are not known yet, or the reason why there is none.
struct Candidate {
  std::string plan;    ///< "planned", or the baseline's family
  std::string reason;  ///< why it cannot be; "" if it can
  ScheduleSpec spec;
  Partition partition;
  Placement placement;
  Schedule schedule;            ///< lowered
  std::vector<bool> recompute;  ///< [stage]; empty = none
};

/// A schedule of a family with its transfers, for a partition. `order`: the compute-only one of a
/// family that builds it.
Candidate candidate_of(std::string plan, const ScheduleSpec& spec, Partition partition,
                       const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                       std::vector<bool> recompute = {},
                       const std::optional<Schedule>& order = std::nullopt);

/// The placement on the devices of the case.
Placement placed(Placement placement, const CaseConfig& config);

/// Device and memory of each rank of a case.
std::vector<DeviceId> devices_of(const CaseConfig& config);
Bytes memory_limit(const CaseConfig& config, const Cluster& cluster, DeviceId device);
std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster);
/// Likewise of the ranks of a plan, which may say its own `devices`.
std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster,
                                 const std::vector<DeviceId>& devices);

/// Cuts that are given, checked against the model; nothing if they are to be searched. Errors:
/// ConfigError.
std::optional<Partition> given_cuts(const CaseConfig& config, const Layers& layers);

}  // namespace pfeife
