// What a verb of pfeife-run executes: a plan, or a model with its cuts and schedule.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "planner/ir/plan.h"
#include "runtime/execute/rank_pipeline.h"

namespace pfeife {

/// As the user says it. Either `plan`, or `model` and `schedule` (and `cuts`).
struct PlanRequest {
  std::string plan;      ///< plan.yaml
  std::string model;     ///< .pt2; with a plan: instead of the one that it names
  std::string schedule;  ///< .csv
  std::string cuts;      ///< numbers of graph nodes, separated by blanks
  std::optional<std::int64_t> microbatch_size;  ///< without a plan; empty = as exported
  std::string device = "cpu";                   ///< as open_device() reads it
  bool double_precision = false;
  std::uint64_t seed = 0;
};

/// Ready to be executed on any rank.
struct Executable {
  Pipeline pipeline;
  WeightSource source;
  RankOptions rank;
  std::optional<Plan> plan;
};

/// Opens the device, reads the files and judges the schedule. ConfigError with the place and the
/// remedy.
Executable read_executable(const PlanRequest& request);

}  // namespace pfeife
