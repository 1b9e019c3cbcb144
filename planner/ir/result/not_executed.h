// Features of plans that a program, or one of its options, cannot execute, and why. The exports and
// pfeife.Pipeline check this table; configs/reference/execution.md prints it.
//   std::puts(why_not_executed("export", {planned.best().plan}).c_str());
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "planner/ir/model/recipe.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

/// A plan, and the format in which its linear layers compute.
struct PlanToExecute {
  const Plan& plan;
  Format format = Format::Wide;
};

struct NotExecuted {
  const char* where;   ///< program or option: "Pipeline(shard=)", "torch", "export" (the others)
  const char* what;    ///< of the plan: "slices"
  const char* reason;  ///< with the remedy
  bool (*has)(const PlanToExecute&);  ///< whether the plan has it
};

/// All rows, in the order in which they are checked.
std::span<const NotExecuted> not_executed();

/// The reason of the first row of `where` whose feature `planned` has; "" if there is none.
std::string why_not_executed(std::string_view where, const PlanToExecute& planned);

}  // namespace pfeife
