// Nodes that every stage runs for itself instead of being sent their results.
#pragma once

#include <vector>

#include "planner/cost/operators/graph_facts.h"

namespace pfeife {

/// [node] true if its result depends on no model input, parameter, random number or buffer that is
/// written (positions, masks, rotary tables; in-place operators among them included), or is a mere
/// view of a model input. Operators that only look at a tensor's shape do not depend on it. Linear.
std::vector<bool> local_nodes(const GraphFacts& facts);

}  // namespace pfeife
