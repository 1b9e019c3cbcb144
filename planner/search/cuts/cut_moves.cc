#include "planner/search/cuts/cut_moves.h"

#include <algorithm>

namespace pfeife {
namespace {

bool in_order(const Cuts& cuts) {
  for (std::size_t i = 1; i < cuts.size(); ++i)
    if (cuts[i] <= cuts[i - 1]) return false;
  return true;
}

/// The position whose sum is nearest, looked for from `at` on; of two as near the first.
std::int32_t nearest_position(const std::vector<double>& sums, double sum, std::int32_t at) {
  auto nearest = sums.begin() + at;
  while (nearest != sums.begin() && *(nearest - 1) >= sum) --nearest;
  while (nearest != sums.end() - 1 && *nearest < sum) ++nearest;
  if (nearest != sums.begin() && *nearest - sum >= sum - *(nearest - 1)) --nearest;
  return static_cast<std::int32_t>(nearest - sums.begin());
}

}  // namespace

CutMoves::CutMoves(const CutModel& model, const Placement& placement) {
  for (const std::vector<double>* sums : {&model.load(0), &model.held(Hold::Saved)})
    if (sums->back() > sums->front()) lengths_.push_back(sums);
  for (std::size_t t = 1; t < placement.stages(); ++t)
    for (std::size_t s = 0; s < t; ++s)
      if (placement.rank_of_stage[s] == placement.rank_of_stage[t])
        within_rank_.push_back({s + 1, t});
}

Cuts CutMoves::random(const Cuts& cuts, Random& random) const {
  const std::size_t inner = cuts.size() - 2;
  Cuts moved = cuts;
  if (random.below(4) != 0 && !lengths_.empty()) {
    shift(moved, random_row(inner, random), random);
  } else if (random.below(3) != 0) {
    moved[1 + random.below(inner)] += random.step(16);
  } else {
    moved[1 + random.below(inner)] += random.step(8);
    moved[1 + random.below(inner)] += random.step(8);
  }
  return in_order(moved) ? moved : cuts;
}

CutMoves::Row CutMoves::random_row(std::size_t cuts, Random& random) const {
  if (!within_rank_.empty() && random.below(2) == 0)
    return within_rank_[random.below(within_rank_.size())];
  const std::size_t i = 1 + random.below(cuts), j = 1 + random.below(cuts);
  return {std::min(i, j), std::max(i, j)};
}

void CutMoves::shift(Cuts& cuts, Row row, Random& random) const {
  const std::vector<double>& sums = *lengths_[random.below(lengths_.size())];
  const std::size_t lead = random.below(2) == 0 ? row.first : row.last;
  const auto last = static_cast<std::int32_t>(sums.size()) - 1;
  const std::int32_t to = std::clamp(cuts[lead] + random.step(16), 0, last);
  const double by = between(sums, 0, to) - between(sums, 0, cuts[lead]);
  for (std::size_t i = row.first; i <= row.last; ++i)
    cuts[i] = i == lead
                  ? to
                  : nearest_position(sums, sums[static_cast<std::size_t>(cuts[i])] + by, cuts[i]);
}

}  // namespace pfeife
