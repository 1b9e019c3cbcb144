// `plan.head: auto`: the output layer on the last rank or on all ranks, and why.
#pragma once

#include <string>
#include <vector>

#include "experiments/plans/evaluated_case.h"

namespace pfeife {

/// Why the ranks of a case cannot share the output layer of its model; "" = they can.
std::string undivided_because(const Request& config, const Layers& layers);

/// The best plan of either place that a search has found, what was chosen first; empty unless the
/// case asks for `auto`.
std::vector<Alternative> head_alternatives(const Request& config, const Layers& layers,
                                           const Answer& answer);

/// The same where the plan is not that of the least estimate: its place counts as chosen.
void choose_head(const EvaluatedCase& evaluated, std::vector<Alternative>& alternatives);

}  // namespace pfeife
