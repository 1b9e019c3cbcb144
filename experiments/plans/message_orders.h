// The order of the messages of plans that are simulated: where messages wait, the fastest of a few.
#pragma once

#include <span>

#include "experiments/plans/evaluated_case.h"

namespace pfeife {

/// Tries the orders of planner/ir/schedule/message_order.h on those planned ones of the cases that
/// a search found, that fit, and whose simulation has messages that wait for their queue, and keeps
/// in the plan the one with which its step is simulated fastest, if that is less than without and
/// the plan still fits: the simulation, and under SelectBy::P95 the 95th percentile, never gets
/// slower. The estimate stays. `workers`: processes. Errors: RuntimeFault.
void order_messages(std::span<EvaluatedCase> cases, std::size_t workers);

}  // namespace pfeife
