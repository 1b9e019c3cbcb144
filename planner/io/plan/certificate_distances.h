// The layers of a certificate with distances in place of numbers, so that blocks of a model that
// are alike read alike.
#pragma once

#include "planner/ir/layers.h"

namespace pfeife {

/// Every layer that a value, storage or parameter names is counted from the one that the entry
/// before, or the name before, has; likewise the values of storages, which become natural numbers.
void to_distances(Layers& layers);

/// Back again. Of distances that no layers have, numbers that no layers have.
void from_distances(Layers& layers);

}  // namespace pfeife
