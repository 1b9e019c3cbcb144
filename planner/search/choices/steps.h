// The steps of planning behind the search over cuts and schedules. Each adds to the pool what it
// finds, and goes on from what is there. To add a way to find plans, add its row to the table.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "planner/ir/request/taken_plan.h"
#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// What steps may use.
struct PlanningInputs {
  const Problem& problem;  ///< with nothing open; its recomputation is that of the pool's plans
  const SearchOptions& options;
  const SearchFunction& search;
  std::vector<Priced> handed = {};  ///< plans of other cases, priced for `problem`
  bool offload = false;
  bool search_placement = false;
  std::optional<PlanRule> less_memory = {};  ///< orders with less memory are built, by this rule
};

struct PlanningStep {
  std::string_view name;
  bool (*wanted)(const PlanningInputs&, const Pool&);
  void (*take)(const PlanningInputs&, Pool&);
};

/// In the order in which they are taken.
std::span<const PlanningStep> planning_steps();

/// Takes the steps that are wanted. SearchOptions::after_step is told of each, with its seconds.
/// After each the best plan is no slower than before (a failed check is an internal error).
/// Errors: ConfigError of a step.
void take_steps(const PlanningInputs& inputs, Pool& pool);

}  // namespace pfeife
