// A batch of samples as the microbatches of a step, of any sizes, and a replica's share of a step:
// for tests. pfeife-run takes its steps from TrainingData.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/model/graph_stage.h"

namespace pfeife::testing {

/// `samples` spread over `microbatches` as evenly as can be, the larger ones first; some get none
/// if there are fewer samples than microbatches.
inline std::vector<std::int64_t> even_sizes(std::int64_t samples, std::size_t microbatches) {
  const auto n = static_cast<std::int64_t>(microbatches);
  std::vector<std::int64_t> sizes(microbatches);
  for (std::int64_t m = 0; m < n; ++m)
    sizes[static_cast<std::size_t>(m)] = samples / n + (m < samples % n ? 1 : 0);
  return sizes;
}

/// The model's inputs for a batch, cut into microbatches of the given sizes along the batch
/// dimension of each. An input that has none goes to every microbatch as it is. Each microbatch's
/// loss counts with its share of the samples.
inline StepInputs split_batch(const Graph& graph, std::uint64_t step,
                              const std::map<ValueId, at::Tensor>& batch,
                              std::span<const std::int64_t> sizes) {
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  StepInputs inputs{step, {}, {}, {sizes.begin(), sizes.end()}};
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    auto& microbatch = inputs.microbatches.emplace_back();
    for (const auto& [input, tensor] : batch) {
      const auto dimension = graph.value(input).batch_dimension;
      microbatch[input] =
          dimension ? tensor.narrow(static_cast<std::int64_t>(*dimension), first, size).contiguous()
                    : tensor;
    }
    inputs.shares.push_back(static_cast<double>(size) / static_cast<double>(total));
    first += size;
  }
  return inputs;
}

/// The share of a replica in a step: the `microbatches` that follow those of the replicas before
/// it. Their losses keep their weights in the whole step.
inline StepInputs share_of_replica(const StepInputs& step, std::size_t replica,
                                   std::size_t microbatches) {
  StepInputs share;
  share.step = step.step;
  share.first_microbatch = replica * microbatches;
  const auto cut = [&](const auto& all) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(share.first_microbatch);
    return std::decay_t<decltype(all)>(first, first + static_cast<std::ptrdiff_t>(microbatches));
  };
  share.microbatches = cut(step.microbatches);
  share.shares = cut(step.shares);
  if (!step.samples.empty()) share.samples = cut(step.samples);
  return share;
}

}  // namespace pfeife::testing
