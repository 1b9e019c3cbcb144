// How a training updates parameters: the optimizer's numbers, and the learning rate of each step.
//   learning_rate({.schedule = RateSchedule::Cosine, .decay_steps = 100}, 50)  // half of the
//   largest
//
// The rate is a function of the step alone: a training that continues has the rates of one that was
// never interrupted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/ir/model/optimizer.h"

namespace pfeife {

/// After the warm-up.
enum class RateSchedule { Constant, Linear, Cosine };

/// "constant", "linear", "cosine".
std::string to_string(RateSchedule schedule);
std::vector<RateSchedule> rate_schedules();

struct OptimizerOptions {
  Optimizer kind = Optimizer::Adam;
  double learning_rate = 1e-3;  ///< the largest
  double momentum = 0.9;        ///< of Optimizer::Momentum
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;  ///< decoupled for AdamW, added to the gradient otherwise
  double clip_norm = 0;     ///< largest norm of all gradients of the model together; 0 = any
  RateSchedule schedule = RateSchedule::Constant;
  double min_rate = 0;            ///< where a decay ends
  std::int64_t warmup_steps = 0;  ///< the rate rises linearly to the largest
  std::int64_t decay_steps = 0;   ///< from the first step to the end of a decay, warm-up included

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// The rate of step `step`, which counts from 0 and includes the steps of earlier runs. With W
/// steps of warm-up and a decay that ends at step T: (step + 1) / W of the largest while step < W;
/// then min + (max - min) (1 - x) or min + (max - min) (1 + cos(pi x)) / 2 with x = (step - W) / (T
/// - W); the smallest from T on. Source: torchtitan's lr_scheduler; torch.optim.lr_scheduler's
/// LinearLR, CosineAnnealingLR and SequentialLR up to T.
double learning_rate(const OptimizerOptions& options, std::int64_t step);

}  // namespace pfeife
