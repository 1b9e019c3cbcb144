#include "planner/search/bound/row_game.h"

#include <algorithm>
#include <cmath>

#include "planner/search/bound/path_master.h"

namespace pfeife {
namespace {

constexpr std::size_t kPrograms = 60;      ///< dynamic programs over cuts at most
constexpr double kCloseEnough = 1e-4;      ///< of the bound
constexpr double kGameTolerance = 1e-7;    ///< of the master, in units of the bound
constexpr std::size_t kMostPivots = 4000;  ///< of one game

std::vector<double> best_weights(AnyOrderRows& rows) {
  std::vector<double> weights(rows.size(), 1.0 / static_cast<double>(rows.size())), best = weights;
  CutBound::Minimum minimum = rows.minimum(weights);
  const double unit = std::max(1.0, minimum.scaled);
  double least = minimum.scaled;
  PathMaster master(0, 1);
  for (std::size_t k = 0; k < kPrograms; ++k) {
    std::vector<double> lengths = rows.lengths(minimum.cuts);
    for (double& length : lengths) length /= unit;
    master.add_stage(k == 0 ? std::span<const double>() : lengths, 0, 1);
    if (k == 0) {
      for (const double& length : lengths) master.add({&length, 1}, 0);
      master.enter_path(0);
    }
    master.solve(
        kGameTolerance, kMostPivots, [&] { return master.most_violated(kGameTolerance); }, [] {});
    std::ranges::fill(weights, 0.0);
    for (const auto& [row, weight] : master.weights()) weights[row] = weight;
    minimum = rows.minimum(weights);
    if (minimum.scaled > least) least = minimum.scaled, best = weights;
    if (master.value() * unit <= least * (1 + kCloseEnough)) break;
  }
  return best;
}

}  // namespace

std::vector<double> whole_weights(AnyOrderRows& rows) {
  std::vector<double> weights = best_weights(rows);
  const double most = rows.most_weight();
  for (double& weight : weights) weight = std::round(weight * most);
  return weights;
}

}  // namespace pfeife
