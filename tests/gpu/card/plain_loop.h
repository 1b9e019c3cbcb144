// A graph's training step as a plain loop over LibTorch's operators: no stages, no schedule, no
// messages, and the host never waits for the device.
//
// What pfeife's step is compared with. It shares the compiled operator calls and the optimizer's
// kernels with the runtime; everything between them is its own.
#pragma once

#include "runtime/execute/rank_pipeline.h"

namespace pfeife::card {

class PlainLoop {
 public:
  /// Trains `tensors` (shared handles). The references must outlive it.
  PlainLoop(const Graph& graph, RankTensors tensors, const RankOptions& options);

  /// Forward and backward of each microbatch, then the update. Returns the mean loss, on the
  /// device.
  at::Tensor step(const StepInputs& inputs);

 private:
  at::Tensor forward(const std::map<ValueId, at::Tensor>& inputs);

  const Graph& graph_;
  RankOptions options_;
  std::vector<NodeEffects> effects_;
  GraphSplit split_;
  StageProgram program_;
  RankTensors tensors_;
  std::vector<ParameterRange> parameters_;
  OptimizerState state_;
  std::vector<at::Tensor> values_;
  ValueId loss_;
  std::int64_t updates_ = 0;
};

}  // namespace pfeife::card
