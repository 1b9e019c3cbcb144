// What a schedule family is: a name, the points it accepts, how it makes a schedule, where its
// stages live. The table of all families is in families.cc; each family is one file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Why a family cannot make a schedule at a point, and the nearest points where it can.
struct Refusal {
  std::string reason;
  std::optional<std::size_t> microbatches;     ///< nearest valid N, the rest unchanged
  std::optional<std::size_t> stages_per_rank;  ///< nearest valid V, the rest unchanged
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct Family {
  std::string name;
  std::string rule;  ///< one line, for people
  /// Judges a point that has passed the checks common to all families (sizes, knobs that exist).
  std::optional<Refusal> (*refuse)(const ScheduleSpec&) = nullptr;
  /// Compute-only schedule of a point that is not refused.
  Schedule (*generate)(const ScheduleSpec&) = nullptr;
  Placement (*placement)(const ScheduleSpec&) = nullptr;
  bool takes_loop_batch = false;
  bool takes_prefetch = false;
  bool takes_slices = false;     ///< may cut the sequence of each microbatch
  bool takes_placement = false;  ///< its stages may live anywhere: ScheduleSpec::rank_of_stage
  /// Round-robin placement and an order that does not depend on costs: what bounds can be proven
  /// for.
  bool certified = true;
  bool side_by_side = false;  ///< has cells of F and B at once (OVERLAP_F_B)
  /// The order is built for given costs and memory (zero_bubble_order); generate() makes the one
  /// for equal times, free transfers and no memory cap.
  bool built_for_costs = false;
  /// Not among `all`: zbv_greedy begins with its order where memory is short.
  bool only_by_name = false;
  Mode mode = Mode::Train;  ///< what its rows are of
  /// All ranks share the output layer (StageGraph::head_barriers); 0: the last stage has it.
  std::size_t head_barriers = 0;

  /// Searched with whole microbatches: those whose order is written down for slices are, without
  /// them, other families.
  bool takes_whole() const { return !takes_slices || built_for_costs; }
};

/// rank(s) = s mod D for the D V stages of the point.
Placement round_robin(const ScheduleSpec& spec);
/// Rank r has stages r and 2D - 1 - r.
Placement folded(const ScheduleSpec& spec);

/// Refuses all numbers of stages a rank but one; all below two; all but two.
std::optional<Refusal> one_stage_a_rank(const ScheduleSpec& spec);
std::optional<Refusal> at_least_two_stages(const ScheduleSpec& spec);
std::optional<Refusal> exactly_two_stages(const ScheduleSpec& spec);

/// The value nearest to `from` (>= 1, the smaller one of two equally near) that `valid` accepts;
/// none within 4096.
template <class Predicate>
std::optional<std::size_t> nearest(std::size_t from, Predicate&& valid) {
  for (std::size_t step = 1; step <= 4096; ++step) {
    if (step < from && valid(from - step)) return from - step;
    if (valid(from + step)) return from + step;
  }
  return std::nullopt;
}

}  // namespace pfeife
