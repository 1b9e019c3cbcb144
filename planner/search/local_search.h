// Better cuts from given ones: steepest descent, and annealing in batches of sixteen.
//
// Budgets are counts and random numbers come from the seed alone, so the same call gives the same
// cuts anywhere. Cuts that are too full by Candidates::excess count as slower than any that are
// not, by how much they exceed.
#pragma once

#include <cstdint>

#include "planner/search/candidate.h"

namespace pfeife {

/// xorshift64*: small, fast and the same everywhere, unlike the standard distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567ULL) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return (state_ * 0x2545F4914F6CDD1DULL) >> 16;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  double unit() { return static_cast<double>(next() & 0xFFFFFFFF) / 4294967296.0; }
  /// 1, 2, 3, ... with falling chances, at most `most`; either sign.
  std::int32_t step(std::int32_t most) {
    std::int32_t size = 1;
    while (size < most && next() % 4 != 0) ++size;
    return next() % 2 == 0 ? size : -size;
  }

 private:
  std::uint64_t state_;
};

/// One cut, two cuts or a row of cuts moved; `cuts` themselves if they would not be in order. At
/// least two stages.
Cuts random_move(const Cuts& cuts, Random& random);

/// Cuts and what they are worth: step time in ns if they seem to fit, else 1e15 + bytes too many.
struct Scored {
  Cuts cuts;
  double score = 0;
};
Scored score(Candidates& candidates, const Cuts& cuts);

/// Moves one cut, or a row of neighbouring cuts together, as long as the best such move gains;
/// at most `passes` moves, fewer for schedules of very many actions.
Scored descend(Candidates& candidates, Scored from, std::size_t passes);

/// Simulated annealing: `batches` times sixteen random moves (one cut, two cuts, a row of cuts), of
/// which the first that the present temperature accepts is made. The temperature falls from 1 % to
/// 0.001 % of the score. Returns the best seen.
Scored anneal(Candidates& candidates, const Scored& from, std::size_t batches, std::uint64_t seed);

}  // namespace pfeife
