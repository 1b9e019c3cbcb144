// What each stage does with what it saves: keeps it, computes it again, sends it to the host, or
// some of each. The choice is made for one schedule on given cuts.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// [stage] the number of its alternative.
using Alternatives = std::vector<std::size_t>;

struct JointChoice {
  Alternatives alternatives;
  Nanoseconds estimate{0};
  std::vector<Bytes> peak_memory;  ///< [rank]
};

struct JointProblem {
  const Schedule& compute_only;
  const Placement& placement;
  std::vector<std::size_t> counts;  ///< [stage] alternatives that it has, at least 1
  std::function<StageCosts(const Alternatives&)> costs_of;
  std::vector<Bytes> memory_limit;  ///< [rank]
  /// AtNeed: where the peaks are above the limits, messages are received late.
  Receives receives = Receives::AsReady;
  /// What hosts lack for what the rows have away; empty = they lack nothing.
  std::function<Bytes(const Schedule& lowered, const StageCosts& costs)> missing_on_hosts = {};
};

/// Combinations that are all tried; more are searched greedily.
inline constexpr std::size_t kMostCombinations = 4096;

/// The fastest choice whose peaks are within the limits, those of hosts included; of equally fast
/// ones the first, with the number of stage 0 as the highest digit. Where there are more than
/// kMostCombinations, a local search, first of all stages at once, then of those that come at the
/// same turn on their ranks, of those of a rank, and of each: the alternative with which least is
/// missing, then least time is taken, until no change of one group makes it better. nullopt if
/// nothing was found that fits.
std::optional<JointChoice> fastest_fitting(const JointProblem& problem);

}  // namespace pfeife
