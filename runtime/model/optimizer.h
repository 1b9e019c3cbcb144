// The update of a rank's parameters: LibTorch's fused SGD, Adam and AdamW.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/ir/model/optimizer_options.h"
#include "runtime/model/weights.h"

namespace pfeife {

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

/// Updates the given parameters from their gradients, which become zero, with the learning rate of
/// `options` whatever their schedule. `step`: updates, from 1.
/// Parameters without a gradient are left alone. Whole parameters need not be contiguous.
void update(RankTensors& tensors, std::span<const ParameterRange> parameters, OptimizerState& state,
            const OptimizerOptions& options, std::int64_t step);

}  // namespace pfeife
