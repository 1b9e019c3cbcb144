// Weight gradients that wait between I and W.
#pragma once

#include <functional>
#include <vector>

#include "planner/ir/model/graph.h"
#include "runtime/device/aten.h"
#include "runtime/model/stage_observer.h"

namespace pfeife {

/// The weight gradients of a node that are still to be computed.
struct PendingWeight {
  NodeId node;
  std::vector<at::Tensor> kept;   ///< what `compute` needs besides parameters
  std::function<void()> compute;  ///< adds to the parameters' gradients
};

/// The products of one microbatch that wait; filled by I, emptied by W.
struct WeightQueue : torch::CustomClassHolder {
  std::vector<PendingWeight> pending;
  /// Computes them all and frees what they held.
  void run(StageObserver* observer = nullptr);
};

}  // namespace pfeife
