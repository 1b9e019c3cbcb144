// A batch of samples as the microbatches of a step: of any sizes, also unequal, also none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/model/graph_stage.h"

namespace pfeife {

/// `samples` spread over `microbatches` as evenly as can be, the larger ones first; some get none
/// if there are fewer samples than microbatches.
std::vector<std::int64_t> even_sizes(std::int64_t samples, std::size_t microbatches);

/// The model's inputs for a batch, cut into microbatches of the given sizes along the batch
/// dimension of each. An input that has none goes to every microbatch as it is. Each microbatch's
/// loss counts with its share of the samples (or by the model's loss weight), so the step's loss is
/// the mean over the batch. ConfigError if the sizes do not add up to the samples, or all are 0.
StepInputs split_batch(const Graph& graph, std::uint64_t step,
                       const std::map<ValueId, at::Tensor>& batch,
                       std::span<const std::int64_t> sizes);

/// The share of a replica in a step: the `microbatches` that follow those of the replicas before
/// it. Their losses keep their weights in the whole step.
StepInputs share_of_replica(const StepInputs& step, std::size_t replica, std::size_t microbatches);

}  // namespace pfeife
