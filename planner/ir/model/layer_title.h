// What people call a layer.
#pragma once

#include <string>

#include "planner/ir/model/layers.h"

namespace pfeife {

/// Module and last operator, "blocks.7.mlp.fc1 (linear_17)"; the name alone where no module is
/// known. As unique in a model as its layers' names, which a module may share with others.
std::string layer_title(const Layer& layer);

}  // namespace pfeife
