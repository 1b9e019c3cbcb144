// What the executor itself costs: steps of stages that do nothing.
#pragma once

#include "planner/ir/basics/units.h"
#include "runtime/model/stage.h"

namespace pfeife {

class EmptyStage final : public Stage {
 public:
  /// One of a chain of `stages`.
  EmptyStage(StageId stage, std::size_t stages, at::Device device = at::kCPU)
      : value_(at::zeros({1}, at::TensorOptions().device(device))) {
    if (stage.value > 0) sources_.emplace_back(stage.value - 1);
    if (stage.index() + 1 < stages) destinations_.emplace_back(stage.value + 1);
  }
  const std::vector<StageId>& sources() const override { return sources_; }
  const std::vector<StageId>& destinations() const override { return destinations_; }
  PerStage forward(MicrobatchId, const PerStage&) override { return hand(destinations_); }
  PerStage backward(MicrobatchId, const PerStage&) override { return hand(sources_); }
  PerStage backward_input(MicrobatchId, const PerStage&) override { return hand(sources_); }
  void backward_weight(MicrobatchId) override {}
  std::optional<at::Tensor> loss(MicrobatchId) const override { return {}; }

 private:
  PerStage hand(const std::vector<StageId>& to) const {
    return PerStage(to.size(), Tensors{value_});
  }
  std::vector<StageId> sources_, destinations_;
  at::Tensor value_;
};

/// Time of this thread for one action of a rank that executes `stages` empty stages and
/// `microbatches` microbatches a step: median over `steps` steps. Half of the actions hand a value
/// to a stage of the same rank.
Nanoseconds executor_overhead(std::size_t stages, std::size_t microbatches, int steps);

}  // namespace pfeife
