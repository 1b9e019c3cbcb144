// From the temporaries of nodes to those of the layers that they make up.
#pragma once

#include <vector>

#include "planner/cost/layers/layer_of_node.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// [layer] How far a layer rises above all that it saves (F, B), saves and weight-saves (I) or
/// weight-saves (W): while one of its nodes runs, what later ones of them save is not there yet, or
/// no longer; in I, W needs nothing of earlier ones yet. Linear.
std::vector<PassBytes> layer_temporary(const Graph& graph, const Profile& profile,
                                       const NodeLayers& layers);

}  // namespace pfeife
