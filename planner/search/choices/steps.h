// The steps of planning that come after the search over cuts and schedules. Each adds plans to the
// pool of that search. A new way to find plans is a row of the table in steps.cc.
#pragma once

#include <optional>
#include <vector>

#include "planner/ir/request/taken_plan.h"
#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// What the steps start from, and which of them are asked for.
struct PlanningInputs {
  /// One microbatch size, layer order and device order. Its `recompute` is that of the plans in the
  /// pool, which were all searched with one.
  const Problem& problem;
  const SearchOptions& options;
  const SearchFunction& search;
  /// Plans of other cases of the sweep, priced for `problem`. Empty = the step is left out.
  std::vector<Priced> handed = {};
  bool offload = false;           ///< plan.offload: auto
  bool search_placement = false;  ///< plan.placement: search
  /// Set: orders that need less memory are added, within the slowdowns that the rule allows.
  std::optional<PlanRule> less_memory = {};
};

/// Runs the steps that `inputs` asks for, in the order of the table in steps.cc, and calls
/// SearchOptions::after_step after each with its seconds. Errors: ConfigError of a step; an
/// internal error if the best plan of the pool got slower.
void take_steps(const PlanningInputs& inputs, Pool& pool);

}  // namespace pfeife
