// The layers of a model that runs forward only.
#pragma once

#include "planner/ir/model/layers.h"

namespace pfeife {

/// What is left of the layers' costs in Mode::Forward: times of F, parameters, what F has in place.
/// `saved` and storages stay, for they say what is alive while F runs, though nothing is kept after
/// it (stage_costs.h). Whether a value has a gradient stays as well: stages are linked by such
/// values.
Layers forward_layers(Layers layers);

}  // namespace pfeife
