// What RoundBound keeps of the ranks that it has gone through, sorted into levels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pfeife {

/// How far both rounds have come, and the largest times of the ranks so far, ns, at least.
struct RoundState {
  std::int32_t x = 0, y = 0;  ///< where the next rank's stages begin
  double delay = 0;           ///< until the second round begins
  double after = 0;           ///< of what is left behind it
  double passed = 0;          ///< until the second round's last F, delay included
};

/// Levels of a state's three times.
struct RoundLevel {
  std::size_t delay = 0, after = 0, passed = 0;
};

/// States by level, and of every level only those that none of it, or of lower levels, has come
/// farther than.
class RoundStates {
 public:
  /// Empty, with so many levels of each of the times.
  void reset(const RoundLevel& levels);
  void add(const RoundLevel& level, const RoundState& state) {
    cells_[at(level)].push_back(state);
    most_.delay = std::max(most_.delay, level.delay);
    most_.after = std::max(most_.after, level.after);
    most_.passed = std::max(most_.passed, level.passed);
  }
  /// Leaves those that none has come farther than: they stand for the others, with the smallest
  /// times of all they stand for. Returns about how many comparisons that took.
  std::size_t keep_best();

  template <class Use>
  void each(const Use& use) const {
    for_each_level([&](const RoundLevel& level) {
      for (const RoundState& state : cells_[at(level)]) use(level, state);
    });
  }

 private:
  struct Known {
    std::int32_t x, y;
    RoundState* state;
  };
  using Front = std::vector<Known>;  // x falls, y rises

  std::size_t at(const RoundLevel& l) const {
    return (l.delay * levels_.after + l.after) * levels_.passed + l.passed;
  }
  /// Up to the highest of each that has states.
  template <class Use>
  void for_each_level(const Use& use) const {
    for (RoundLevel l{0, 0, 0}; l.delay <= most_.delay; ++l.delay)
      for (l.after = 0; l.after <= most_.after; ++l.after)
        for (l.passed = 0; l.passed <= most_.passed; ++l.passed) use(l);
  }
  void inherit(const RoundLevel& level);
  void merge(const Front& other);
  void take_own(std::vector<RoundState>& own);

  RoundLevel levels_, most_;
  std::vector<std::vector<RoundState>> cells_;
  std::vector<Front> best_;  // of a level and all lower ones
  Front front_, merged_;     // while one is made
};

}  // namespace pfeife
