// The verbs of pfeife-schedule as functions: text or values in, text out. The command line is read
// in planner/pfeife_schedule.cc.
//   const Schedule rows =
//       tool::generate_schedule({.family = "1f1b", .ranks = 4, .microbatches = 8}, false);
//   std::puts(tool::timing_text(tool::time_schedule(rows, {}, {}, {})).c_str());
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/ir/schedule/schedule.h"
#include "planner/schedule_tool/unit_costs.h"

namespace pfeife::tool {

/// Fills in what the user left open: a family that needs another number of stages a rank gets the
/// nearest valid one.
ScheduleSpec completed(ScheduleSpec spec, bool stages_per_rank_given);

/// Completes and generates. Errors: ConfigError if the point is refused.
Schedule generate_schedule(const ScheduleSpec& spec, bool stages_per_rank_given);

/// An order built for the costs: zb_greedy. `most_in_flight`: stages in flight of a rank at most,
/// each from its F to the end of its W, one number or one a rank; empty = no limit. Errors:
/// ConfigError if the point is refused or a list has another length.
Schedule build_schedule(const ScheduleSpec& spec, const UnitCosts& costs,
                        const std::vector<std::size_t>& most_in_flight);

/// What `lower` adds besides the options of the pass itself.
struct LowerRequest {
  LoweringOptions options;
  bool merge_backward = false, split_backward = false;
  UnitCosts costs;
  std::vector<StageGraph::Edge> skips;     ///< beside the chain
  std::vector<std::vector<StageId>> tied;  ///< stages that share a parameter
};
/// Errors: ConfigError if the schedule cannot be lowered.
Schedule lower_schedule(const Schedule& schedule, const LowerRequest& request);

/// All violations, with the grid around the first; "" if there are none.
std::string violations_text(const Schedule& schedule, const Requirements& required,
                            const Semantics& semantics);
/// The same of a chain of stages.
std::string violations_text(const Schedule& schedule, const Semantics& semantics,
                            Mode mode = Mode::Train);

/// "8 microbatches", "8 microbatches of 4 slices"
std::string microbatches_text(const Schedule& schedule);
/// Ranks, stages, actions, bubble under unit costs, activations in flight and what I leaves for W.
std::string info_text(const Schedule& schedule, Mode mode = Mode::Train);

/// The schedule as a grid: ranks as rows, columns of one unit of time (F = 1, B = 2, I = W = 1,
/// free transfers). `held`: behind each row, how many microbatches it has in flight at most, and
/// between I and W.
std::string grid_text(const Schedule& schedule, bool held = false, Mode mode = Mode::Train);
/// What stands behind the head and behind each row then: "in flight  I to W", "4          2".
std::vector<std::string> held_texts(const Schedule& schedule);

/// A schedule that ran, and what came of it.
struct Timing {
  Schedule lowered;
  Trace trace;
};
/// Lowers if there are no transfers yet, judges, estimates. Errors: ConfigError if the schedule is
/// wrong or deadlocks.
Timing time_schedule(const Schedule& schedule, const UnitCosts& costs, const Semantics& semantics,
                     const EstimateOptions& options);
/// Step time, bubble, peak in flight per rank, attribution; of forward only also the latency of a
/// microbatch.
std::string timing_text(const Timing& timing);

}  // namespace pfeife::tool
