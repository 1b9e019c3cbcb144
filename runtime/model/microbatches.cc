#include "runtime/model/microbatches.h"

#include <numeric>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// A row a sample: the first dimension is the one that the export left open (or fixed to its
/// batch).
bool has_samples(const Graph& graph, ValueId input) {
  const auto& sizes = graph.value(input).type.sizes;
  return !sizes.empty() && sizes[0] == graph.microbatch_size;
}

}  // namespace

std::vector<std::int64_t> even_sizes(std::int64_t samples, std::size_t microbatches) {
  const auto n = static_cast<std::int64_t>(microbatches);
  std::vector<std::int64_t> sizes(microbatches);
  for (std::int64_t m = 0; m < n; ++m)
    sizes[static_cast<std::size_t>(m)] = samples / n + (m < samples % n ? 1 : 0);
  return sizes;
}

StepInputs split_batch(const Graph& graph, std::uint64_t step,
                       const std::map<ValueId, at::Tensor>& batch,
                       std::span<const std::int64_t> sizes) {
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (total < 1) throw ConfigError({graph.name}, "a step needs at least one sample");
  for (const auto& [input, tensor] : batch)
    if (has_samples(graph, input) && (tensor.dim() == 0 || tensor.size(0) != total))
      throw ConfigError({graph.name}, stream_all("the input '", graph.value(input).name, "' has ",
                                                 tensor.dim() == 0 ? 0 : tensor.size(0),
                                                 " samples, the microbatches take ", total));
  StepInputs inputs{step, {}, {}, {sizes.begin(), sizes.end()}};
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    auto& microbatch = inputs.microbatches.emplace_back();
    for (const auto& [input, tensor] : batch)
      microbatch[input] = has_samples(graph, input) ? tensor.narrow(0, first, size) : tensor;
    inputs.loss_scale.push_back(static_cast<double>(size) / static_cast<double>(total));
    first += size;
  }
  return inputs;
}

StepInputs share_of_replica(const StepInputs& step, std::size_t replica, std::size_t microbatches) {
  StepInputs share;
  share.step = step.step;
  share.first_microbatch = replica * microbatches;
  const auto cut = [&](const auto& all) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(share.first_microbatch);
    return std::decay_t<decltype(all)>(first, first + static_cast<std::ptrdiff_t>(microbatches));
  };
  share.microbatches = cut(step.microbatches);
  share.loss_scale = cut(step.loss_scale);
  if (!step.samples.empty()) share.samples = cut(step.samples);
  return share;
}

}  // namespace pfeife
