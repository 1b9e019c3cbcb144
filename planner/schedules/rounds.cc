#include "planner/schedules/rounds.h"

namespace pfeife {

std::optional<Refusal> refuse_uneven_rounds(const ScheduleSpec& spec) {
  if (auto refused = at_least_two_stages(spec)) return refused;
  const auto even = [&](std::size_t n) { return n % rounds(spec.ranks, n) == 0; };
  if (even(spec.microbatches)) return std::nullopt;
  return Refusal{std::to_string(spec.microbatches) + " microbatches do not divide into " +
                     std::to_string(rounds(spec.ranks, spec.microbatches)) +
                     " equal rounds (max(1, N / D) rounds must divide N)",
                 nearest(spec.microbatches, even),
                 {}};
}

}  // namespace pfeife
