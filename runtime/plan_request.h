// What a verb of pfeife-run executes: a plan, or a model with its cuts and schedule.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "planner/ir/result/plan.h"
#include "runtime/execute/rank_pipeline.h"
#include "runtime/launch/start_ranks.h"

namespace pfeife {

/// What the user asks for: either `plan`, or `model` and `schedule` (and `cuts`).
struct PlanRequest {
  std::string plan;      ///< plan.yaml
  std::string model;     ///< .pt2; with a plan: instead of the one that it names
  std::string schedule;  ///< .csv
  std::string cuts;      ///< numbers of graph nodes, separated by blanks
  std::optional<std::int64_t> microbatch_size;  ///< without a plan; empty = as exported
  /// A device that open_device() reads; "cuda" is a card for each rank where there are several
  /// cards, or where a launcher has started the ranks.
  std::string device = "cpu";
  bool double_precision = false;
  std::uint64_t seed = 0;
  std::optional<std::chrono::seconds> hang_after;  ///< NcclOptions::deadline; empty = by the plan
  ReplicaRanks replicas = {};                ///< each executes the plan on its share of the batch
  std::optional<std::int64_t> global_batch;  ///< samples a step that the user expects
};

/// Ready to be executed on any rank.
struct Executable {
  Pipeline pipeline;
  WeightSource source;
  RankOptions rank;
  std::optional<Plan> plan;
  bool card_each = false;  ///< a card for each rank; opened in the processes of ranks only
  std::optional<std::chrono::seconds> hang_after;

  /// Where the ranks are to compute.
  void place(LaunchOptions& launch) const;
};

/// Opens the device, reads the files and judges the schedule. ConfigError with the place and the
/// remedy.
Executable read_executable(const PlanRequest& request);

/// Errors: ConfigError if the rows have F alone, of a verb that needs backwards.
void require_training(const Executable& run);

}  // namespace pfeife
