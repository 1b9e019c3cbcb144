#include "planner/schedules/microbatch_order.h"

#include <algorithm>

namespace pfeife {

static std::vector<Visit> grouped(std::size_t microbatches, std::size_t stages_per_rank,
                                  std::size_t group, bool descending) {
  std::vector<Visit> visits;
  visits.reserve(microbatches * stages_per_rank);
  for (std::size_t first = 0; first < microbatches; first += group) {
    const std::size_t end = std::min(microbatches, first + group);
    for (std::size_t i = 0; i < stages_per_rank; ++i)
      for (std::size_t b = first; b < end; ++b)
        visits.push_back({descending ? stages_per_rank - 1 - i : i, b});
  }
  return visits;
}

std::vector<Visit> forward_visits(std::size_t microbatches, std::size_t stages_per_rank,
                                  std::size_t group) {
  return grouped(microbatches, stages_per_rank, group, false);
}

std::vector<Visit> backward_visits(std::size_t microbatches, std::size_t stages_per_rank,
                                   std::size_t group) {
  return grouped(microbatches, stages_per_rank, group, true);
}

void append_idle(std::vector<Cell>& row, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) row.emplace_back();
}

}  // namespace pfeife
