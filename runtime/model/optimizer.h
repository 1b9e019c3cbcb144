// The update of a rank's parameters: LibTorch's fused SGD, Adam and AdamW.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/ir/model/profile.h"
#include "runtime/model/weights.h"

namespace pfeife {

struct OptimizerOptions {
  Optimizer kind = Optimizer::Adam;
  double learning_rate = 1e-3;
  double momentum = 0.9;  ///< of Optimizer::Momentum
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  ///< decoupled for AdamW, added to the gradient otherwise
  double clip_norm = 0;     ///< largest norm of all gradients of the model together; 0 = any
};

/// Elements of a contiguous parameter, as they lie.
struct ParameterRange {
  ParameterId parameter;
  std::int64_t begin = 0, count = 0;
};

/// State of the parameters of a rank: tensors by parameter and name ("exp_avg", ...); of a part of
/// a parameter, flat.
using OptimizerState = std::map<ParameterId, std::map<std::string, at::Tensor>>;

/// Names of the tensors that each parameter's state consists of.
const std::vector<std::string>& state_names(Optimizer kind);

/// Updates the given parameters from their gradients, which become zero. `step` counts from 1.
/// Parameters without a gradient are left alone. Whole parameters need not be contiguous.
void update(RankTensors& tensors, std::span<const ParameterRange> parameters, OptimizerState& state,
            const OptimizerOptions& options, std::int64_t step);

}  // namespace pfeife
