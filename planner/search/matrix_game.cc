#include "planner/search/matrix_game.h"

#include <algorithm>
#include <limits>

namespace pfeife {

// maximise sum y subject to gains y <= 1, y >= 0: then y / sum y is the column player's strategy,
// the prices of the limits give the row player's, and 1 / sum y is the value.
GameSolution solve_game(const std::vector<std::vector<double>>& gains) {
  const std::size_t m = gains.size(), n = gains.front().size(), width = n + m + 1;
  double largest = 0;
  for (const auto& row : gains) largest = std::max(largest, std::ranges::max(row));
  // [row] limits, then prices; [column] y, slack, right side.
  std::vector<std::vector<double>> table(m + 1, std::vector<double>(width, 0.0));
  std::vector<std::size_t> basis(m);
  for (std::size_t r = 0; r < m; ++r) {
    for (std::size_t c = 0; c < n; ++c) table[r][c] = gains[r][c] / largest;
    table[r][n + r] = table[r].back() = 1;
    basis[r] = n + r;
  }
  std::fill_n(table[m].begin(), n, -1.0);
  constexpr double kSmall = 1e-9;
  for (std::size_t pivots = 0; pivots < 50 * (m + n); ++pivots) {
    // The steepest column at first; after many pivots the first one, which never goes in circles.
    std::size_t enter = 0;
    if (pivots < 10 * (m + n))
      enter = static_cast<std::size_t>(std::min_element(table[m].begin(), table[m].end() - 1) -
                                       table[m].begin());
    else
      while (enter + 1 < width - 1 && table[m][enter] >= -kSmall) ++enter;
    if (table[m][enter] >= -kSmall) break;
    std::size_t leave = m;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t r = 0; r < m; ++r) {
      if (table[r][enter] <= kSmall) continue;
      const double ratio = table[r].back() / table[r][enter];
      if (ratio < least || (ratio == least && basis[r] < basis[leave])) least = ratio, leave = r;
    }
    if (leave == m) break;  // not with gains above 0
    const double pivot = table[leave][enter];
    for (double& x : table[leave]) x /= pivot;
    for (std::size_t r = 0; r <= m; ++r) {
      const double factor = table[r][enter];
      if (r == leave || factor == 0) continue;
      for (std::size_t c = 0; c < width; ++c) table[r][c] -= factor * table[leave][c];
    }
    basis[leave] = enter;
  }
  GameSolution found{std::vector<double>(m, 0.0), std::vector<double>(n, 0.0), 0};
  for (std::size_t r = 0; r < m; ++r) {
    found.rows[r] = std::max(0.0, table[m][n + r]);
    if (basis[r] < n) found.columns[basis[r]] = std::max(0.0, table[r].back());
  }
  for (std::vector<double>* strategy : {&found.rows, &found.columns}) {
    double sum = 0;
    for (const double x : *strategy) sum += x;
    for (double& x : *strategy) x /= sum;
  }
  found.value = largest / std::max(kSmall, table[m].back());
  return found;
}

}  // namespace pfeife
