// Training: steps on data, with checkpoints and progress.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/start_ranks.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/training_data.h"

namespace pfeife {

struct TrainingSettings {
  int steps = 10;                      ///< of this run
  const TrainingData* data = nullptr;  ///< none: synthetic, from seed and step
  bool shuffle = false;                ///< each epoch in the shuffled_order() of the rank's seed
  std::filesystem::path save;          ///< folder of checkpoints; "" = none
  int save_every = 0;                  ///< steps; 0 = only after the last
  std::filesystem::path resume;        ///< a checkpoint; "" = from the model's own weights
};

/// After a step; of rank 0.
struct StepProgress {
  std::int64_t step = 0;  ///< steps done since training began, earlier runs included
  double loss = 0;        ///< mean over the samples of the step
  double learning_rate = 0;
  double seconds = 0;  ///< from the end of the step before
  double samples_per_second = 0;
  Bytes memory{0};  ///< most that a rank has held so far: its process, or its tensors on a device
};

/// Trains on this rank; every rank must call it. `report` is called on rank 0 after each step.
void train(const Pipeline& pipeline, const WeightSource& source, const RankOptions& options,
           const TrainingSettings& settings, const RankSeat& seat,
           const std::function<void(const StepProgress&)>& report);

/// "step 12: loss 3.25, learning rate 0.001, 118 samples/s, 310 MiB".
std::string to_string(const StepProgress& progress);

}  // namespace pfeife
