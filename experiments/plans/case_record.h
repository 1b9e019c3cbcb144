// From evaluated plans to the record of their case: what tables and reports are made of.
#pragma once

#include <vector>

#include "experiments/plans/evaluated_case.h"
#include "planner/ir/result/case_record.h"

namespace pfeife {

/// All but the rates, which are of the engine by which the case's plans are compared.
ResultRow row_of(const Evaluation& plan);
/// The engine by which the case's plans are compared.
TraceSource compared_engine(const EvaluatedCase& evaluated);

/// The record of the case of that request: the chosen plan first, then the baselines. What only the
/// case's config knows is left empty: `swept`, `resolved`.
CaseRecord record_of(const EvaluatedCase& evaluated, const Request& config);

/// The chosen plan and the baselines, those that cannot be left out.
std::vector<Evaluation*> kept_plans(EvaluatedCase& evaluated);
std::vector<const Evaluation*> kept_plans(const EvaluatedCase& evaluated);

}  // namespace pfeife
