// Which bound of a case's search covers a plan: the one place that decides it. Tables, pages and
// drawings show a bound beside a plan, and a gap, only where it does.
#pragma once

#include <optional>
#include <span>

#include "experiments/plans/evaluated_case.h"
#include "planner/ir/result/covered.h"

namespace pfeife {

/// The bound that no plan of a class with this plan is below: the search's own, or the one on what
/// that leaves out (Covered::left_out). Nothing if neither covers the plan.
std::optional<CoveringBound> covering_bound(const EvaluatedCase& evaluated, const Evaluation& plan);

/// The same bound in full, for plan.yaml.
std::optional<Bound> bound_for(const EvaluatedCase& evaluated, const Evaluation& plan);

/// What that bound covers, in full; "" = there is none.
std::string covered_text(const EvaluatedCase& evaluated, const Evaluation& plan);

/// The class of a bound in a few words: its families, whether the actions of those that are built
/// for costs may have any order (which is then that of other families, too), whether its cuts are
/// given.
std::string class_name(const Bound& bound, bool any_order);

/// The schedule among `listed` that is this one, whose knobs may be written otherwise; nullptr:
/// none.
const ScheduleSpec* listed_as(const ScheduleSpec& spec, std::span<const ScheduleSpec> listed);

}  // namespace pfeife
