// The factor on a loss that keeps fp16 gradients from vanishing, and the weights of a step's
// microbatches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/device/aten.h"
#include "runtime/model/graph_stage.h"

namespace pfeife {

// The factor that keeps fp16 gradients from vanishing: one for all stages, torch's GradScaler. A
// step whose gradients are not all finite is skipped on every rank and makes the factor smaller;
// some steps without such make it larger.

/// The defaults are torch.amp.GradScaler's.
struct LossScaleOptions {
  float initial = 65536;
  double growth = 2, backoff = 0.5;
  std::int64_t growth_interval = 2000;  ///< steps
};

class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options)
      : options_(options), scale_(options.initial) {}

  float scale() const { return scale_; }
  /// What gradients are multiplied with to lose the factor.
  float inverse() const { return static_cast<float>(1.0 / static_cast<double>(scale_)); }
  std::int64_t good_steps() const { return good_steps_; }  ///< since it last changed
  void set(float scale, std::int64_t good_steps) { scale_ = scale, good_steps_ = good_steps; }

  /// After a step; equal on all ranks, so that the factor stays equal. `finite`: all gradients of
  /// the model were.
  void update(bool finite);

 private:
  LossScaleOptions options_;
  float scale_;
  std::int64_t good_steps_ = 0;
};

/// Multiplies the gradients with `inverse`. The result is more than 0 if one of them is not finite;
/// the host does not wait for it.
at::Tensor unscale(std::span<const at::Tensor> gradients, float inverse);

// The weights by which the losses of a step's microbatches count, of a model that names one: known
// before the first backward, as they are computed from the model's inputs alone.

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
