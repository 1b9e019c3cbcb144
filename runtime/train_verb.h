// pfeife-run train: timed steps; or training on data, with checkpoints.
#pragma once

#include <optional>
#include <string>

#include "runtime/launch/start_ranks.h"
#include "runtime/plan_request.h"

namespace pfeife {

struct TrainRequest {
  PlanRequest what;
  LaunchOptions launch;
  int steps = 10;
  std::string out;     ///< measurement.csv; "" = none
  std::string traces;  ///< folder of a trace of each rank in torch.profiler's format; "" = none
  std::string data;    ///< folder of .npy files; "" = synthetic
  std::string save;    ///< folder of checkpoints; "" = none
  int save_every = 0;  ///< steps; 0 = after the last
  std::string resume;  ///< folder of checkpoints, or one; "" = none
  bool new_data =
      false;             ///< continues on other data than the checkpoint's, from their first sample
  bool shuffle = false;  ///< the samples, each epoch anew
  /// The optimizer's; empty = as the checkpoint to resume has it, or else OptimizerOptions.
  std::optional<double> learning_rate, min_lr, momentum, beta1, beta2, epsilon, weight_decay,
      clip_norm;
  std::optional<std::int64_t> warmup_steps, decay_steps;
  std::optional<std::string> schedule;  ///< "constant", "linear", "cosine"
  bool defer_batch_norm = false;        ///< running statistics of a step's whole batch

  bool trains() const { return !data.empty() || !save.empty() || !resume.empty(); }
};

/// Trains, prints time and losses, and returns the exit code.
int train_verb(TrainRequest request);

}  // namespace pfeife
