#include "planner/ir/model/optimizer_options.h"

#include <cmath>
#include <numbers>

namespace pfeife {

std::string to_string(RateSchedule schedule) {
  switch (schedule) {
    case RateSchedule::Linear:
      return "linear";
    case RateSchedule::Cosine:
      return "cosine";
    case RateSchedule::Constant:
      break;
  }
  return "constant";
}

std::vector<RateSchedule> rate_schedules() {
  return {RateSchedule::Constant, RateSchedule::Linear, RateSchedule::Cosine};
}

double learning_rate(const OptimizerOptions& options, std::int64_t step) {
  const std::int64_t warmup = options.warmup_steps;
  if (step < warmup)
    return options.learning_rate * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (options.schedule == RateSchedule::Constant) return options.learning_rate;
  if (step >= options.decay_steps) return options.min_rate;
  const double x =
      static_cast<double>(step - warmup) / static_cast<double>(options.decay_steps - warmup);
  const double left =
      options.schedule == RateSchedule::Linear ? 1 - x : (1 + std::cos(std::numbers::pi * x)) / 2;
  return options.min_rate + (options.learning_rate - options.min_rate) * left;
}

}  // namespace pfeife
