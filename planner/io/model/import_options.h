// What readers of tables and published profiles must know besides the file.
#pragma once

#include <cstddef>

#include "planner/ir/model/profile.h"

namespace pfeife {

struct ImportOptions {
  std::size_t device_kinds =
      1;              ///< how often each layer's times are repeated: they hold for every kind
  Training training;  ///< optimizer: state per parameter; microbatch_size: only samples are counted
                      ///< by it
};

}  // namespace pfeife
