#include "runtime/model/microbatches.h"

#include <numeric>

#include "planner/ir/basics/error.h"

namespace pfeife {
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
  for (const auto& [input, tensor] : batch) {
    const Value& value = graph.value(input);
    if (!value.batch_dimension) continue;
    const auto dimension = static_cast<std::int64_t>(*value.batch_dimension);
    const std::int64_t found = dimension < tensor.dim() ? tensor.size(dimension) : 0;
    if (found != total)
      throw ConfigError(
          {graph.name},
          stream_all("the input '", value.name, "' has ", found, " samples (dimension ", dimension,
                     " of ", tensor.sizes(), "), the microbatches take ", total));
  }
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

StepInputs share_of_replica(const StepInputs& step, std::size_t replica, std::size_t microbatches) {
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

}  // namespace pfeife
