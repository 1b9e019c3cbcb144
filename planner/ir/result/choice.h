// What a plan chooses: a schedule, where the model is cut, what is recomputed, which device runs
// which rank. Two plans of equal choices are the same plan; all else of a plan follows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/model/layers.h"
#include "planner/ir/model/recompute.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// What a plan does not keep on the device between F and B: what it computes again, what it sends
/// to the host.
struct Recomputed {
  std::vector<bool> stages = {};  ///< [stage]; empty = none
  /// Each by itself, within a stage that `stages` does not have; sorted, none overlaps another.
  std::vector<LayerRange> blocks = {};
  /// The microbatch that a stage runs forward last is kept.
  bool except_last = false;
  /// [stage] share, 0 to 1, of what the stage saves by itself that is offloaded; empty = none.
  std::vector<double> offload = {};

  bool any() const;       ///< is computed again
  bool offloads() const;  ///< anything

  friend bool operator==(const Recomputed&, const Recomputed&) = default;
};
/// "recompute=all", "recompute=0-2 7" (stages), "recompute=12 blocks", "recompute=all except last";
/// "" if nothing is. What is offloaded follows: "offload=0.5", "offload=1 0.25 0 0".
std::string to_string(const Recomputed& recomputed);

/// A plan's choices. Equal choices make equal plans.
struct Choice {
  ScheduleSpec spec;
  Partition partition;
  Placement placement;
  Recomputed recomputed = {};
  /// Compute-only rows that do not follow from `spec`: built for the costs, or given.
  std::optional<Schedule> order = std::nullopt;

  Receives receives = Receives::AsReady;

  friend bool operator==(const Choice&, const Choice&) = default;
};
/// What is chosen besides the stages a rank: "prefetch=3, recompute=0, receives=at_need".
std::string knobs(const Choice& choice);
/// "looped, V=2, prefetch=3, recompute=0".
std::string name_of(const Choice& choice);

}  // namespace pfeife
