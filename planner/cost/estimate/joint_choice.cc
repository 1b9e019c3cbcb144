#include "planner/cost/estimate/joint_choice.h"

#include <algorithm>
#include <tuple>

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {
namespace {

struct Tried {
  JointChoice choice;
  Bytes missing{0};  ///< sum over ranks and hosts
  auto order() const { return std::tuple{missing, choice.estimate, choice.alternatives}; }
};

Tried tried(const JointProblem& problem, Alternatives alternatives) {
  StageCosts costs = problem.costs_of(alternatives);
  Schedule lowered = lower(problem.compute_only, costs, problem.placement);
  const Bytes on_hosts =
      problem.missing_on_hosts ? problem.missing_on_hosts(lowered, costs) : Bytes{0};
  Prices prices = evaluate_lowered(std::move(costs), std::move(lowered), problem.placement);
  Tried found{{std::move(alternatives), prices.estimate, std::move(prices.peak_memory)}, on_hosts};
  for (std::size_t r = 0; r < problem.memory_limit.size(); ++r)
    found.missing += std::max(Bytes{0}, found.choice.peak_memory[r] - problem.memory_limit[r]);
  return found;
}

/// The next combination, as numbers count; false after the last.
bool advance(const std::vector<std::size_t>& counts, Alternatives& alternatives) {
  for (std::size_t s = counts.size(); s-- > 0;) {
    if (++alternatives[s] < counts[s]) return true;
    alternatives[s] = 0;
  }
  return false;
}

Tried best_of_all(const JointProblem& problem) {
  Alternatives alternatives(problem.counts.size(), 0);
  Tried best = tried(problem, alternatives);
  while (advance(problem.counts, alternatives)) {
    Tried next = tried(problem, alternatives);
    if (next.order() < best.order()) best = std::move(next);
  }
  return best;
}

Tried best_nearby(const JointProblem& problem) {
  Tried best = tried(problem, Alternatives(problem.counts.size(), 0));
  for (bool better = true; better;) {
    better = false;
    for (std::size_t s = 0; s < problem.counts.size(); ++s)
      for (std::size_t a = 0; a < problem.counts[s]; ++a) {
        Alternatives changed = best.choice.alternatives;
        if (changed[s] == a) continue;
        changed[s] = a;
        Tried next = tried(problem, std::move(changed));
        if (next.order() >= best.order()) continue;
        best = std::move(next);
        better = true;
      }
  }
  return best;
}

}  // namespace

std::optional<JointChoice> fastest_fitting(const JointProblem& problem) {
  std::size_t combinations = 1;
  for (const std::size_t count : problem.counts)
    combinations = std::min(combinations * count, kMostCombinations + 1);
  Tried best = combinations <= kMostCombinations ? best_of_all(problem) : best_nearby(problem);
  if (best.missing > Bytes{0}) return std::nullopt;
  return std::move(best.choice);
}

}  // namespace pfeife
