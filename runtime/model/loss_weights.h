// The weights by which the losses of a step's microbatches count, of a model that names one: known
// before the first backward, as they are computed from the model's inputs alone.
#pragma once

#include <functional>
#include <vector>

#include "runtime/model/graph_stage.h"

namespace pfeife {

class LossWeights {
 public:
  /// The model must name a loss weight; `graph` and `effects` must outlive it. ConfigError if the
  /// weight depends on more than the model's inputs.
  LossWeights(const Graph& graph, const std::vector<NodeEffects>& effects,
              const WeightSource& source, const Placing& placing, RandomTurns& turns);

  /// [microbatch] weights, computed on the host; 0 for a microbatch without samples. `resized` is
  /// the graph for microbatches of a size. RuntimeFault if a weight is negative or no number.
  std::vector<double> of(const StepInputs& inputs,
                         const std::function<const Graph&(std::int64_t)>& resized);

 private:
  const Graph& graph_;
  const std::vector<NodeEffects>& effects_;
  GraphSplit split_;
  RankTensors tensors_;
  GraphStage stage_;
};

}  // namespace pfeife
