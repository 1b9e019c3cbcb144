#include "planner/cost/estimate/slow_ranks.h"

#include <cmath>

#include "planner/cost/estimate/estimator.h"

namespace pfeife {
namespace {

class SlowedGraph {
 public:
  SlowedGraph(const DependencyGraph& graph, const StageCosts& costs)
      : compiled_(graph), rank_of_slot_(graph.slots.size()) {
    for (const Nanoseconds time : slot_durations(graph.slots, costs))
      durations_.push_back(time.count());
    for (const Task& task : graph.tasks)
      if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer)
        rank_of_slot_[task.slot] = task.rank;
  }
  /// A stage is on one rank, so its durations are that rank's.
  Nanoseconds step(RankId rank, double factor) const {
    std::vector<std::int64_t> slowed = durations_;
    for (std::size_t s = 0; s < slowed.size(); ++s)
      if (rank_of_slot_[s] == rank)
        slowed[s] = std::llround(static_cast<double>(slowed[s]) * factor);
    return Nanoseconds{compiled_.makespan(slowed)};
  }

 private:
  CompiledGraph compiled_;
  std::vector<std::optional<RankId>> rank_of_slot_;
  std::vector<std::int64_t> durations_;
};

}  // namespace

SlowRanks slow_ranks(const DependencyGraph& graph, const StageCosts& costs, double factor) {
  constexpr double kLonger = 1.001, kResolution = 0.001;
  const SlowedGraph slowed(graph, costs);
  SlowRanks found{
      .factor = factor, .rank = {}, .now = slowed.step(RankId{0}, 1), .steps = {}, .slack = {}};
  const auto enough = static_cast<double>(found.now.count()) * kLonger;
  for (std::size_t r = 0; r < graph.ranks; ++r) {
    found.steps.push_back(slowed.step(RankId{r}, factor));
    const auto is_short = [&](double by) {
      return static_cast<double>(slowed.step(RankId{r}, by).count()) <= enough;
    };
    double low = 1, high = SlowRanks::kMostSlack;
    if (is_short(high)) low = high;
    while (high - low > kResolution) {
      const double middle = (low + high) / 2;
      (is_short(middle) ? low : high) = middle;
    }
    found.slack.push_back(low);
  }
  return found;
}

}  // namespace pfeife
