// Which of several ranks comes first, kept up to date as single times change: a tournament, so that
// a change costs the logarithm of the number of ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace pfeife {

class Soonest {
 public:
  /// All ranks at time 0; `ranks` > 0.
  explicit Soonest(std::size_t ranks) {
    while (leaves_ < ranks) leaves_ *= 2;
    time_.assign(leaves_, std::numeric_limits<std::int64_t>::max());
    std::fill_n(time_.begin(), ranks, 0);
    winner_.resize(2 * leaves_);
    for (std::size_t leaf = 0; leaf < leaves_; ++leaf) winner_[leaves_ + leaf] = leaf;
    for (std::size_t node = leaves_; node-- > 1;) play(node);
  }

  /// The rank with the smallest time, of equals the first.
  std::size_t rank() const { return winner_[1]; }
  std::int64_t operator[](std::size_t rank) const { return time_[rank]; }

  void set(std::size_t rank, std::int64_t time) {
    if (time_[rank] == time) return;
    time_[rank] = time;
    for (std::size_t node = (leaves_ + rank) / 2; node > 0; node /= 2) {
      const std::size_t before = winner_[node];
      // Above a match between two others nothing changes.
      if (play(node) == before && before != rank) return;
    }
  }

 private:
  std::size_t play(std::size_t node) {
    const std::size_t left = winner_[2 * node], right = winner_[2 * node + 1];
    return winner_[node] = time_[right] < time_[left] ? right : left;
  }

  std::size_t leaves_ = 1;
  std::vector<std::int64_t> time_;   // [leaf]; those beyond the ranks never come
  std::vector<std::size_t> winner_;  // [node] 1 = the final, 2n and 2n + 1 lead to n
};

}  // namespace pfeife
