// Rounds of microbatches, as torch.distributed.pipelining generalises Megatron's interleaving to
// any N it can divide.
#pragma once

#include <algorithm>
#include <optional>

#include "planner/schedules/family.h"

namespace pfeife {

/// max(1, N / D) rounds of equal size; each passes all stages of a rank before the next begins.
inline std::size_t rounds(std::size_t ranks, std::size_t microbatches) {
  return std::max<std::size_t>(1, microbatches / ranks);
}
inline std::size_t microbatches_a_round(const ScheduleSpec& spec) {
  return spec.microbatches / rounds(spec.ranks, spec.microbatches);
}

/// Refuses V < 2, and an N that does not divide into rounds.
std::optional<Refusal> refuse_uneven_rounds(const ScheduleSpec& spec);

}  // namespace pfeife
