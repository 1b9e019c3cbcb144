// A model of equal layers, shortened: what fits on one card of a model that does not.
#pragma once

#include "planner/ir/model/graph.h"

namespace pfeife::card {

/// The graph without the nodes of layers `count` and later, by their module's path
/// ("...layers.N..."): what came out of the last layer is then what comes out of layer count - 1.
/// ConfigError if the layers hand more than one tensor on, or there are not so many.
Graph first_layers(const Graph& graph, int count);

}  // namespace pfeife::card
