// The step of 1F1B by an event loop of its own, for microbatches that differ.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace pfeife {

/// A step of 1F1B, computed apart from the product: D ranks, B twice F, no transfers. Rank r runs
/// min(D - 1 - r, N) forwards, then a forward and a backward in turn, then backwards.
inline double one_f_one_b(std::size_t ranks, const std::vector<double>& factors) {
  const std::size_t n = factors.size();
  std::vector<std::vector<std::pair<bool, std::size_t>>> rows(ranks);  // (forward, microbatch)
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t warm = std::min(ranks - 1 - r, n);
    std::size_t f = 0, b = 0;
    while (f < warm) rows[r].push_back({true, f++});
    while (f < n) rows[r].push_back({true, f++}), rows[r].push_back({false, b++});
    while (b < n) rows[r].push_back({false, b++});
  }
  std::vector<std::vector<double>> forward(ranks, std::vector<double>(n, -1)), backward = forward;
  std::vector<std::size_t> next(ranks, 0);
  std::vector<double> free(ranks, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks; ++r)
      while (next[r] < rows[r].size()) {
        const auto [is_forward, m] = rows[r][next[r]];
        double ready = 0;
        if (is_forward && r > 0) ready = forward[r - 1][m];
        if (!is_forward) ready = r + 1 < ranks ? backward[r + 1][m] : forward[r][m];
        if (ready < 0) break;
        const double end = std::max(ready, free[r]) + (is_forward ? 1 : 2) * factors[m];
        (is_forward ? forward : backward)[r][m] = end;
        free[r] = end, ++next[r], moved = true;
      }
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace pfeife
