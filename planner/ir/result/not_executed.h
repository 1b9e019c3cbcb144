// What of a plan a program, or an option of it, does not execute, and why: one table, which the
// exports and pfeife.Pipeline go through and configs/reference/combinations.md prints.
//   if (const std::string why = why_not_executed("megatron", {plan}); !why.empty()) ...
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/ir/model/recipe.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// A plan, and what its linear layers compute in.
struct PlanToExecute {
  const Plan& plan;
  Format format = Format::Wide;
};

struct NotExecuted {
  const char* where;   ///< "Pipeline(shard=)"; "export": every export but that for torch
  const char* what;    ///< of the plan: "slices"
  const char* reason;  ///< with the remedy
  bool (*has)(const PlanToExecute&);
};

/// In the order in which they are looked for.
std::span<const NotExecuted> not_executed();

/// The reason of the first row of `where` that `planned` has; "" = it is executed there.
std::string why_not_executed(std::string_view where, const PlanToExecute& planned);

}  // namespace pfeife
