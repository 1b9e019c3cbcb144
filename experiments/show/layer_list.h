// --layers: the layers of a model, which cuts lie between, with what each costs.
#pragma once

#include <string>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// A line a layer: number, module, times on the first device kind, bytes. A layer after which the
/// model must not be cut is marked.
std::string layer_table(const Layers& layers, const Cluster& cluster);

/// The same as CSV, a line a layer and device kind, with why there is no cut after it; bytes and
/// nanoseconds.
std::string layers_csv(const Layers& layers, const Cluster& cluster);

}  // namespace pfeife
