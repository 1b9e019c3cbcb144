#include "planner/search/bound/round_states.h"

#include <tuple>

namespace pfeife {

constexpr std::int32_t kStoodFor = -1;  ///< x of a state that another one stands for

void RoundStates::reset(const RoundLevel& levels) {
  // The vectors keep their room: there are thousands of levels, and this is called for every rank.
  const std::size_t count = levels.delay * levels.after * levels.passed;
  for (auto& states : cells_) states.clear();
  cells_.resize(count), best_.resize(count);
  levels_ = levels, most_ = {};
}

/// Of both fronts together: those that none of the other has come farther than.
void RoundStates::merge(const Front& other) {
  merged_.clear();
  auto a = front_.cbegin(), b = other.cbegin();
  while (a != front_.end() || b != other.end()) {
    const bool first =
        b == other.end() || (a != front_.end() && std::tie(a->x, a->y) >= std::tie(b->x, b->y));
    const Known& next = first ? *a++ : *b++;
    if (merged_.empty() || merged_.back().y < next.y) merged_.push_back(next);
  }
  std::swap(front_, merged_);
}

/// What the next lower levels know.
void RoundStates::inherit(const RoundLevel& level) {
  front_.clear();
  if (level.delay > 0) front_ = best_[at({level.delay - 1, level.after, level.passed})];
  if (level.after > 0) merge(best_[at({level.delay, level.after - 1, level.passed})]);
  if (level.passed > 0) merge(best_[at({level.delay, level.after, level.passed - 1})]);
}

/// Adds a level's own states to the front, and removes from them those that are not of it.
void RoundStates::take_own(std::vector<RoundState>& own) {
  std::ranges::sort(own, [](const RoundState& a, const RoundState& b) {
    return std::tuple(-a.x, -a.y, a.delay, a.after, a.passed) <
           std::tuple(-b.x, -b.y, b.delay, b.after, b.passed);
  });
  const auto stand_for = [&](const RoundState& state) {
    RoundState& by = *std::ranges::partition_point(merged_, [&](const Known& k) {
                        return k.y < state.y;
                      })->state;
    by.delay = std::min(by.delay, state.delay), by.after = std::min(by.after, state.after);
    by.passed = std::min(by.passed, state.passed);
  };
  merged_.clear();
  auto known = front_.begin();
  for (RoundState& state : own) {
    for (; known != front_.end() && std::tie(known->x, known->y) >= std::tie(state.x, state.y);
         ++known)
      if (merged_.empty() || merged_.back().y < known->y) merged_.push_back(*known);
    if (merged_.empty() || merged_.back().y < state.y)
      merged_.push_back({state.x, state.y, &state});
    else
      stand_for(state), state.x = kStoodFor;
  }
  for (; known != front_.end(); ++known)
    if (merged_.empty() || merged_.back().y < known->y) merged_.push_back(*known);
  std::swap(front_, merged_);
}

std::size_t RoundStates::keep_best() {
  std::size_t work = 0;
  for_each_level([&](const RoundLevel& level) {
    inherit(level);
    std::vector<RoundState>& own = cells_[at(level)];
    if (!own.empty()) take_own(own);
    work += 1 + front_.size() + own.size();
    best_[at(level)] = front_;
  });
  for_each_level([&](const RoundLevel& level) {
    std::erase_if(cells_[at(level)], [](const RoundState& s) { return s.x == kStoodFor; });
  });
  return work;
}

}  // namespace pfeife
