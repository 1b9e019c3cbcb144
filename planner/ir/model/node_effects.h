// What the nodes of a graph do besides returning tensors.
#pragma once

#include <utility>
#include <vector>

#include "planner/ir/basics/ids.h"

namespace pfeife {

struct NodeEffects {
  bool random = false;          ///< draws from the random generator
  std::vector<ValueId> writes;  ///< arguments written in place, buffers of batch norm included
  std::vector<std::pair<ValueId, ValueId>>
      aliases;  ///< (argument, output) that may share a storage
  bool metadata_only =
      false;  ///< reads only shape and type of its tensors (zeros_like, new_ones, ...)
};

}  // namespace pfeife
