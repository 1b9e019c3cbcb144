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
  std::size_t candidates = 0;           ///< evaluated
};

/// The order of `spec` is built for costs.
bool is_built(const ScheduleSpec& spec);

/// An order for the given cuts, within the memory limits if one is found. Never null.
std::unique_ptr<Candidates> build_on_cuts(const CutModel& model, const Problem& problem,
                                          const ScheduleSpec& spec, const Cuts& cuts);

/// Builds orders for the equal-time cuts and for those of `starts` that make spec.stages() stages,
/// then moves the cuts of the best under their orders, builds again, and so on while that helps.
/// `effort` as SearchOptions::iterations. Deterministic.
BuiltPlan build_plan(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                     const std::vector<Partition>& starts, std::size_t effort, std::uint64_t seed);

/// Step time (ns) that no order of any kind goes below, for any cuts into stages of the placement
/// of `spec`, whatever the memory. One stage a rank: before rank r can begin, a microbatch has
/// passed the ranks before it (as far as stages surely wait for their neighbours), then the rank
/// has all its work to do. More stages: all work shared by the ranks. Layers count at their fastest
/// device where several kinds may get them, transfers not at all.
double any_order_bound(const CutModel& model, const Problem& problem, const ScheduleSpec& spec);

/// Whether no order of any kind can fit into the memory: a single microbatch does not.
bool no_order_fits(const Problem& problem, const ScheduleSpec& spec);

}  // namespace pfeife
