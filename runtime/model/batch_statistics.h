// Deferred batch norm: running statistics of the whole batch of a step, updated once, as without
// microbatches. What normalises a microbatch are its own statistics, as ever. Kim et al. 2020,
// "torchgpipe: On-the-fly pipeline parallelism for training giant models", section 4.2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/model/operators.h"

namespace pfeife {

/// Places of a batch norm's arguments in its call, if it keeps running statistics and trains.
struct BatchNormArguments {
  std::size_t input = 0, mean = 0, variance = 0, momentum = 0;
};
std::optional<BatchNormArguments> batch_norm_arguments(const Call& call);

/// Statistics of the microbatches of one step of a stage, not yet in the model's buffers.
class BatchStatistics {
 public:
  /// Calls a batch norm on one microbatch ([samples, channels, ...]) and leaves the running
  /// statistics among its arguments as they are. `counts`: whether the microbatch is one more of
  /// this step (false: it is computed again).
  void call(std::uint64_t node, const Call& call, const BatchNormArguments& at,
            std::vector<c10::IValue>& stack, bool counts);
  /// Whether a counter of batches may run: once a step for each node.
  bool first(std::uint64_t node) { return counted_.insert(node).second; }
  /// Updates the running statistics with those of all microbatches since the last call:
  /// running = (1 - momentum) running + momentum batch, the variance with n - 1.
  void commit();

 private:
  struct OfNode {
    at::Tensor running_mean, running_variance;  ///< the model's
    double momentum = 0;
    double count = 0;          ///< numbers a channel
    at::Tensor mean, squares;  ///< their mean; sum of squared distances from it
  };
  std::map<std::uint64_t, OfNode> nodes_;
  std::set<std::uint64_t> counted_;
};

}  // namespace pfeife
