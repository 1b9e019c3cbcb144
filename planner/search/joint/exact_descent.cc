#include "planner/search/joint/exact_descent.h"

#include <algorithm>

#include "planner/cost/stages/recomputed_layers.h"
#include "planner/search/price/price.h"

namespace pfeife {

std::vector<Priced> best_of_each(std::vector<Priced> plans) {
  std::ranges::stable_sort(plans, {}, &Priced::estimate);
  std::vector<Priced> best;
  for (Priced& plan : plans)
    if (std::ranges::find(best, plan.spec, &Priced::spec) == best.end())
      best.push_back(std::move(plan));
  return best;
}

namespace {

/// The plan with a cut moved over legal positions: the next few each way.
std::vector<Priced> moved(const Problem& problem, const Priced& plan, std::size_t cut) {
  constexpr std::int32_t kFarthest = 32;  ///< layers
  constexpr int kPositions = 4;
  std::vector<Priced> found;
  for (const std::int32_t way : {-1, 1}) {
    int positions = 0;
    for (std::int32_t by = 1; by <= kFarthest && positions < kPositions; ++by) {
      Priced next = plan;
      next.partition.cuts[cut] += way * by;
      if (!illegal_because(problem.layers, next.partition).empty() ||
          !illegal_because(problem.layers, next.partition, next.recomputed.blocks).empty())
        continue;
      ++positions;
      found.push_back(std::move(next));
    }
  }
  return found;
}

}  // namespace

Priced descended(const Problem& problem, Priced plan, std::size_t most) {
  std::size_t tried = 0;
  for (bool faster = true; faster;) {
    faster = false;
    for (std::size_t c = 0; c < plan.partition.cuts.size(); ++c)
      for (Priced& next : moved(problem, plan, c)) {
        if (tried++ == most) return plan;
        const auto exact = fitting(problem, std::move(next));
        if (exact && exact->estimate < plan.estimate) plan = *exact, faster = true;
      }
  }
  return plan;
}

}  // namespace pfeife
