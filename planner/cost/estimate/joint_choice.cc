#include "planner/cost/estimate/joint_choice.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/result/need.h"
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
  if (problem.receives == Receives::AtNeed && !fits(prices.peak_memory, problem.memory_limit))
    prices = received_late(std::move(prices), problem.placement);
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

/// Stages that are changed together.
using Group = std::vector<std::size_t>;

/// All, those of a rank that come at the same turn, those of a rank, each by itself. What the ranks
/// that are last to end have to do together, no stage alone is faster with.
std::vector<std::vector<Group>> groupings(const Placement& placement) {
  std::vector<Group> all(1), turns, ranks(placement.ranks()), each;
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    Group& rank = ranks[placement.rank(StageId{s}).index()];
    if (turns.size() == rank.size()) turns.emplace_back();
    turns[rank.size()].push_back(s);
    rank.push_back(s);
    all[0].push_back(s), each.push_back({s});
  }
  return {all, turns, ranks, each};
}

/// Takes what is better than `best`.
class Descent {
 public:
  Descent(const JointProblem& problem, Tried best) : problem_(problem), best_(std::move(best)) {}

  Tried best() && { return std::move(best_); }

  /// Until no change of one group makes it better.
  void descend(const std::vector<Group>& groups) {
    for (bool better = true; better;) {
      better = false;
      for (const Group& group : groups)
        for (std::size_t a = 0; a < most_; ++a) better |= take(with(group, a));
    }
  }

 private:
  Alternatives with(const Group& group, std::size_t a) const {
    Alternatives alternatives = best_.choice.alternatives;
    for (const std::size_t s : group)
      if (a < problem_.counts[s]) alternatives[s] = a;
    return alternatives;
  }
  bool take(Alternatives alternatives) {
    if (!known_.insert(alternatives).second) return false;
    Tried next = tried(problem_, std::move(alternatives));
    if (next.order() >= best_.order()) return false;
    best_ = std::move(next);
    return true;
  }

  const JointProblem& problem_;
  const std::size_t most_ = std::ranges::max(problem_.counts);
  Tried best_;
  std::set<Alternatives> known_{best_.choice.alternatives};
};

Tried best_nearby(const JointProblem& problem) {
  Descent descent(problem, tried(problem, Alternatives(problem.counts.size(), 0)));
  for (const std::vector<Group>& groups : groupings(problem.placement)) descent.descend(groups);
  return std::move(descent).best();
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
