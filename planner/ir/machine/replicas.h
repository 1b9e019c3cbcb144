// How many times a pipeline runs beside itself, each on a part of the batch, and what the replicas
// divide among them.
#pragma once

#include <cstdint>

namespace pfeife {

struct Replicas {
  std::int64_t count = 1;
  /// ZeRO: 0 all-reduces gradients; 1 divides the optimizer's state, 2 gradients, too, 3 parameters
  /// as well.
  int zero = 0;
  bool overlap_reductions = true;  ///< beside the last backward (DDP), not behind it
  friend bool operator==(const Replicas&, const Replicas&) = default;
};

}  // namespace pfeife
