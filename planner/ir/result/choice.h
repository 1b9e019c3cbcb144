// What a plan chooses: a schedule, where the model is cut, what happens to the activations, which
// device runs which rank. Two plans of equal choices are the same plan; all else of a plan follows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/model/layers.h"
#include "planner/ir/model/recompute.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// What happens to the activations that each stage saves between F and B: by default they stay on
/// the device; they may be recomputed in B, or be offloaded to the host.
struct Activations {
  std::vector<bool> stages = {};  ///< [stage] recomputed as a whole; empty = none
  /// Layers recomputed block by block, in stages that `stages` leaves out; sorted, disjoint.
  std::vector<LayerRange> blocks = {};
  /// The microbatch that a stage runs forward last is not recomputed.
  bool except_last = false;
  /// [stage] share, 0 to 1, of what the stage saves by itself that is offloaded; empty = none.
  std::vector<double> offload = {};

  bool recomputes() const;  ///< any stage or block
  bool offloads() const;    ///< of any stage

  friend bool operator==(const Activations&, const Activations&) = default;
};
/// "recompute=all", "recompute=0-2 7" (stages), "recompute=12 blocks", "recompute=all except last";
/// "" if nothing is recomputed. Offloaded shares follow: "offload=0.5", "offload=1 0.25 0 0".
std::string to_string(const Activations& activations);

/// A plan's choices. Equal choices make equal plans.
struct Choice {
  ScheduleSpec spec;
  Partition partition;
  Placement placement;
  Activations activations = {};
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
