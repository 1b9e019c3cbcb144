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

std::vector<Partition> moved_cuts(const Layers& layers, const Partition& partition, std::size_t cut,
                                  const std::vector<LayerRange>& uncut) {
  constexpr std::int32_t kFarthest = 32;  ///< layers
  constexpr int kPositions = 4;
  std::vector<Partition> found;
  for (const std::int32_t way : {-1, 1}) {
    int positions = 0;
    for (std::int32_t by = 1; by <= kFarthest && positions < kPositions; ++by) {
      Partition next = partition;
      next.cuts[cut] += way * by;
      if (!illegal_because(layers, next).empty() || !illegal_because(layers, next, uncut).empty())
        continue;
      ++positions;
      found.push_back(std::move(next));
    }
  }
  return found;
}

std::vector<Partition> few_partitions(const Layers& layers, std::size_t stages) {
  std::vector<Partition> found = {{}};
  for (std::size_t s = 1; s < stages; ++s) {
    std::vector<Partition> longer;
    for (const Partition& begun : found)
      for (std::int32_t cut = begun.cuts.empty() ? 0 : begun.cuts.back() + 1;
           cut + 1 < static_cast<std::int32_t>(layers.size()); ++cut) {
        if (!layers.layers[static_cast<std::size_t>(cut)].no_cut_after.empty()) continue;
        longer.push_back(begun);
        longer.back().cuts.push_back(cut);
        if (longer.size() > 100) return {};
      }
    found = std::move(longer);
  }
  return found;
}

namespace {

/// The sum of what all ranks lack.
Bytes all_lacking(const Problem& problem, const Priced& plan) {
  const std::vector<Bytes> needed = must_fit(problem, plan);
  Bytes sum;
  for (std::size_t r = 0; r < needed.size(); ++r)
    sum += std::max(needed[r] - problem.memory_limit[r], Bytes{0});
  return sum;
}

}  // namespace

Infeasible lack_of(const Problem& problem, const Priced& plan) {
  const std::vector<Bytes> needed = must_fit(problem, plan);
  std::size_t worst = 0;
  for (std::size_t r = 0; r < needed.size(); ++r)
    if (needed[r] - problem.memory_limit[r] > needed[worst] - problem.memory_limit[worst])
      worst = r;
  return {.rank = RankId{worst},
          .needed = needed[worst],
          .available = problem.memory_limit[worst],
          .spec = plan.spec,
          .partition = plan.partition};
}

std::optional<Priced> moved_to_fit(const Problem& problem, Choice choice, std::size_t most) {
  if (auto plan = fitting(problem, choice)) return plan;
  Bytes lacking = all_lacking(problem, price(problem, choice));
  std::size_t tried = 0;
  for (Partition& cuts : few_partitions(problem.layers, choice.partition.stages())) {
    if (tried++ == most) return std::nullopt;
    Choice next = choice;
    next.partition = std::move(cuts);
    if (auto plan = fitting(problem, std::move(next))) return plan;
  }
  for (bool less = tried == 0; less;) {
    less = false;
    for (std::size_t c = 0; c < choice.partition.cuts.size(); ++c)
      for (Partition& cuts :
           moved_cuts(problem.layers, choice.partition, c, choice.activations.blocks)) {
        if (tried++ == most) return std::nullopt;
        Choice next = choice;
        next.partition = std::move(cuts);
        if (auto plan = fitting(problem, next)) return plan;
        const Bytes lacks = all_lacking(problem, price(problem, next));
        if (lacks < lacking) lacking = lacks, choice = std::move(next), less = true;
      }
  }
  return std::nullopt;
}

Priced descended(const Problem& problem, Priced plan, std::size_t most) {
  std::size_t tried = 0;
  for (bool faster = true; faster;) {
    faster = false;
    for (std::size_t c = 0; c < plan.partition.cuts.size(); ++c)
      for (Partition& cuts :
           moved_cuts(problem.layers, plan.partition, c, plan.activations.blocks)) {
        if (tried++ == most) return plan;
        Choice next = plan;
        next.partition = std::move(cuts);
        const auto exact = fitting(problem, std::move(next));
        if (exact && exact->estimate < plan.estimate) plan = *exact, faster = true;
      }
  }
  return plan;
}

}  // namespace pfeife
