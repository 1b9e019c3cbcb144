#include "planner/cost/layers/repetition.h"

namespace pfeife {

std::optional<Repetition> longest_repetition(std::span<const std::size_t> sequence) {
  std::optional<Repetition> best;
  for (std::size_t period = 1; 2 * period <= sequence.size(); ++period) {
    std::size_t equal = 0;  // elements up to i that equal those a period later
    for (std::size_t i = 0; i + period < sequence.size(); ++i) {
      equal = sequence[i] == sequence[i + period] ? equal + 1 : 0;
      if (equal < period) continue;
      const Repetition found{i + 1 - equal, period, equal / period + 1};
      if (!best || found.period * found.times > best->period * best->times) best = found;
    }
  }
  return best;
}

}  // namespace pfeife
