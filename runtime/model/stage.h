// What the executor asks of a stage. GraphStage computes; tests have stages that wait.
#pragma once

#include <optional>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "runtime/device/aten.h"

namespace pfeife {

/// The tensors of one message between two stages, in the order of GraphSplit::between; gradients in
/// the same order, those that need none left undefined.
using Tensors = std::vector<at::Tensor>;

/// Tensors for each neighbour of a stage: sources or destinations in order of their number.
using PerStage = std::vector<Tensors>;

class Stage {
 public:
  virtual ~Stage() = default;

  /// Stages it receives values from and sends values to, sorted.
  virtual const std::vector<StageId>& sources() const = 0;
  virtual const std::vector<StageId>& destinations() const = 0;

  /// F. `received` per source; the result per destination.
  virtual PerStage forward(MicrobatchId m, const PerStage& received) = 0;
  /// B. `gradients` per destination; the result per source. Gradients of parameters are added up.
  virtual PerStage backward(MicrobatchId m, const PerStage& gradients) = 0;
  /// I. As B, but what can wait is kept for backward_weight.
  virtual PerStage backward_input(MicrobatchId m, const PerStage& gradients) = 0;
  /// W. The rest of B.
  virtual void backward_weight(MicrobatchId m) = 0;
  /// The loss of a microbatch after its forward, not scaled; empty on stages that do not make it.
  virtual std::optional<at::Tensor> loss(MicrobatchId m) const = 0;
};

}  // namespace pfeife
