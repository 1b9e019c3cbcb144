// From the nodes of a graph to layers: where a model may be cut, and what a cut makes it send.
//
// **Cut candidates.** Walk the nodes in order and keep book of the bytes that autograd and later
// nodes hold (fp32 on a GPU, whatever the profile: the candidates depend on the graph alone). A
// layer is the nodes that do not make them grow, and the one that does; what follows the last of
// them is the last layer. If that is nothing but the model's result, the layer has neither nodes
// nor a cut before it; it is there so that layers count as the nodes of the reference system do
// (Pfeife, ICML 2025, which groups operators by the growth of allocated memory as measured).
//
// **Local nodes** (grouping_parts.h) are run by every stage that needs them. They never end a layer
// and belong to the layer that needs them first, which is charged with their time; a stage that
// runs them again is not.
//
// **Values.** What a later layer reads is sent, from the layer that made it, as the tensor read:
// two views of one storage that cross the same cut are two values, each of its own bytes. Model
// inputs and results of local nodes are not sent.
//
// **No cut** between the first use of a storage and its last write (in-place operators), nor
// between two uses of a buffer, parameter or input that is written (running statistics).
#pragma once

#include <vector>

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// What ends a layer.
enum class Grouping {
  Growth,  ///< a node that makes the kept bytes grow, as said above
  Blocks,  ///< a layer is all between two borders of blocks (module_borders.h)
};

/// The layers of `graph` with the times of one profile per device kind, all of this graph and one
/// training. Times, kept bytes and parameters of the layers add up to those of the profiles; bytes
/// are those of the first profile. A parameter that nobody reads goes to the first layer. Linear
/// but for values that many layers read. ConfigError if the graph has no operators.
Layers layers_from_graph(const FactsByPrecision& graph, const std::vector<Profile>& profiles,
                         Grouping grouping = Grouping::Growth);
/// The same with layers that end where `ends` [node] says, and after the last node.
Layers layers_from_graph(const FactsByPrecision& graph, const std::vector<Profile>& profiles,
                         const std::vector<bool>& ends);

}  // namespace pfeife
