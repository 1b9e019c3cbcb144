// From the nodes of a graph to layers: where a model may be cut, and what a cut makes it send.
//
// Cut candidates: walk the nodes in order and keep book of the bytes that autograd and later nodes
// hold. A layer is the nodes that do not make them grow, and the one that does. The model's result
// is a last layer of its own, without nodes, cost or a cut before it, so that layers count as the
// nodes of the reference system do. (Pfeife, ICML 2025, groups operators by the growth of allocated
// memory; here by liveness and the saved rules, so that no device is needed.)
//
// Values: what a later layer reads is sent. Model inputs are not: every stage reads its own. Nodes
// that depend on nothing but constants (positions, masks, rotary tables) are not sent either: each
// stage computes its own. No cut: between the first use of a storage and its last write (in-place
// operators), nor between two uses of a buffer that is written (running statistics).
#pragma once

#include <vector>

#include "planner/cost/aliasing.h"
#include "planner/ir/graph.h"
#include "planner/ir/layers.h"
#include "planner/ir/profile.h"

namespace pfeife {

/// [node] true where the result depends on no input, parameter or random number: recomputed by
/// whoever needs it.
std::vector<bool> input_independent(const Graph& graph, const Aliasing& aliases);

/// The layers of `graph` with the times of one profile per device kind (same training and graph).
/// Times, saved bytes and parameters of the layers add up to those of the profile. Linear but for
/// values read by many layers.
Layers layers_from_graph(const Graph& graph, const std::vector<Profile>& profiles);

}  // namespace pfeife
