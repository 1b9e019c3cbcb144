// Plans whose order is built for their costs (zb_greedy): order and cuts are chosen in turns.
#pragma once

#include <memory>

#include "planner/search/candidate.h"

namespace pfeife {

/// What came of one schedule of a family that is built for costs.
struct BuiltPlan {
  ScheduleSpec spec;
  std::optional<PlannedSchedule> plan;  ///< with its order
  std::optional<Infeasible> closest;    ///< if there is no plan
  std::string impossible;               ///< why it has no cuts at all; "" = it may
  bool nothing_fits = false;            ///< proven of any order at all
  std::size_t candidates = 0;           ///< evaluated
};

/// The order of `spec` is built for costs.
bool is_built(const ScheduleSpec& spec);

/// An order for the given cuts, within the memory limits if one is found. Never null.
std::unique_ptr<Candidates> build_on_cuts(const CutModel& model, const Problem& problem,
                                          const ScheduleSpec& spec, const Cuts& cuts);

/// Builds orders for the equal-time cuts and for those of `starts` that make spec.stages() stages,
/// then moves the cuts of the best under their orders, builds again, and so on while that helps.
/// `effort` as SearchOptions::iterations. Deterministic, whatever `threads`.
BuiltPlan build_plan(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                     const std::vector<Partition>& starts, std::size_t effort, std::uint64_t seed,
                     std::size_t threads);

/// What is known of a single microbatch on the placement of `spec`: no order of several needs less
/// memory, whether ranks do B or I and W.
struct OneMicrobatch {
  std::optional<Partition> cuts;  ///< by which it may fit
  bool nothing_fits = false;      ///< no cuts let it fit: proven
};
OneMicrobatch one_microbatch(const Problem& problem, const ScheduleSpec& spec);

}  // namespace pfeife
