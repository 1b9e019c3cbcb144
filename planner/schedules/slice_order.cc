#include "planner/schedules/slice_order.h"

#include <algorithm>

#include "planner/schedules/microbatch_order.h"

namespace pfeife {

std::vector<Cell> sliced_row(const ScheduleSpec& spec, std::size_t rank, std::size_t warm_up,
                             std::size_t group) {
  const std::size_t slices = spec.slices, all = spec.microbatches * slices;
  const std::vector<Visit> forwards = forward_visits(all, spec.stages_per_rank, group);
  const std::vector<Visit> backwards = backward_visits(all, spec.stages_per_rank, group);
  const auto slice = [&](std::size_t number) {
    return MicrobatchId{number, static_cast<std::int32_t>(slices)};
  };
  std::vector<Cell> row;
  row.reserve(2 * forwards.size());
  std::size_t f = 0, b = 0;
  const auto next_forward = [&] {
    row.emplace_back(
        forward(dealt_stage(forwards[f].loop, rank, spec.ranks), slice(forwards[f].microbatch)));
    ++f;
  };
  while (f < std::min(warm_up, forwards.size())) next_forward();
  while (b < backwards.size()) {
    if (f < forwards.size()) next_forward();
    const std::size_t i = backwards[b].microbatch;
    row.emplace_back(backward(dealt_stage(backwards[b].loop, rank, spec.ranks),
                              slice(i - i % slices + slices - 1 - i % slices)));
    ++b;
  }
  return row;
}

}  // namespace pfeife
