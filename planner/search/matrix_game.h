// The value of a matrix game: how to weigh the rows so that even the worst column is large.
#pragma once

#include <vector>

namespace pfeife {

/// Mixed strategies of both players; each sums to 1 and is not negative.
struct GameSolution {
  std::vector<double> rows, columns;
  double value = 0;  ///< of the game: rows gain at least, columns lose at most about this
};

/// The row player gains gains[row][column] > 0. By the simplex method (Dantzig 1951), in floating
/// point: good strategies, not exact ones. At least one row and one column.
GameSolution solve_game(const std::vector<std::vector<double>>& gains);

}  // namespace pfeife
