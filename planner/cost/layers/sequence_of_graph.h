// Whether the microbatches of a graph can be cut into slices of their sequence, and what attention
// costs in each layer.
//
// Slices of a sequence need causal attention, whose later positions read keys and values of earlier
// ones alone, and no other operator that mixes positions. So every attention must be one operator
// with is_causal and without a mask, over one sequence (queries as long as keys); all else must be
// among operators known to treat positions one by one. What is not known to do so is refused. Not
// modelled: memory of scores where attention is run by parts.
#pragma once

#include <vector>

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Sets layers.sequence, or else layers.whole_because, of the layers of the graph. `profile`: of
/// the first device kind.
void add_sequence(const GraphFacts& facts, const Profile& profile, Layers& layers);

}  // namespace pfeife
