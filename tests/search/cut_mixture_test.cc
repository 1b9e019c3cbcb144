// The game of paths against mixtures of cuts: its value against a linear program over all cuts that
// knows nothing of paths, solved by Clp.
#include "planner/search/bound/cut_mixture.h"

#include <gtest/gtest.h>

#include <map>

#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/lower.h"
#include "tests/search/random_instance.h"

#ifdef PFEIFE_CLP
#include <coin/Clp_C_Interface.h>
#endif

namespace pfeife {
namespace {

#ifdef PFEIFE_CLP

constexpr double kFree = std::numeric_limits<double>::max();

/// Minimises the last column; all columns are at least 0.
class LinearProgram {
 public:
  explicit LinearProgram(std::size_t columns) : columns_(columns) {}
  /// sum of entries (column, factor) within [low, high].
  void add_row(const std::map<std::size_t, double>& entries, double low, double high) {
    for (const auto& [column, factor] : entries)
      columns_[column].push_back({static_cast<int>(low_.size()), factor});
    low_.push_back(low), high_.push_back(high);
  }
  double least() const {
    std::vector<CoinBigIndex> start{0};
    std::vector<int> row;
    std::vector<double> factor, objective(columns_.size(), 0.0);
    objective.back() = 1;
    for (const auto& column : columns_) {
      for (const auto& [r, f] : column) row.push_back(r), factor.push_back(f);
      start.push_back(static_cast<CoinBigIndex>(row.size()));
    }
    Clp_Simplex* const model = Clp_newModel();
    Clp_setLogLevel(model, 0);
    Clp_loadProblem(model, static_cast<int>(columns_.size()), static_cast<int>(low_.size()),
                    start.data(), row.data(), factor.data(), nullptr, nullptr, objective.data(),
                    low_.data(), high_.data());
    Clp_dual(model, 0);
    EXPECT_EQ(Clp_status(model), 0);
    const double found = Clp_objectiveValue(model);
    Clp_deleteModel(model);
    return found;
  }

 private:
  std::vector<std::vector<std::pair<int, double>>> columns_;
  std::vector<double> low_, high_;
};

/// What the LP takes from cuts: [slot] durations, [limit] bytes above it.
struct CutPrices {
  std::vector<Nanoseconds> times;
  std::vector<double> excess;
};

/// The least makespan at the mean times of a mixture of these cuts and of none at all, which take
/// `to_beat` and no memory, so that the mean excess of every limit is 0 or less. Columns: the
/// shares of the cuts, that of none, the end of every task, the makespan.
double mixed_makespan(const DependencyGraph& graph, const std::vector<CutPrices>& cuts,
                      double to_beat) {
  const std::size_t none = cuts.size(), ends = none + 1, makespan = ends + graph.size();
  LinearProgram program(makespan + 1);
  std::map<std::size_t, double> shares{{none, 1}};
  for (std::size_t c = 0; c < cuts.size(); ++c) shares[c] = 1;
  program.add_row(shares, 1, 1);
  for (std::size_t k = 0; !cuts.empty() && k < cuts[0].excess.size(); ++k) {
    std::map<std::size_t, double> held;
    for (std::size_t c = 0; c < cuts.size(); ++c) held[c] = cuts[c].excess[k];
    program.add_row(held, -kFree, 0);
  }
  for (std::size_t t = 0; t < graph.size(); ++t) {
    std::map<std::size_t, double> after{{ends + t, 1}};
    for (std::size_t c = 0; c < cuts.size(); ++c)
      after[c] = -static_cast<double>(cuts[c].times[graph.tasks[t].slot].count());
    program.add_row(after, 0, kFree);
    for (const Edge& edge : graph.edges_into(TaskId{t})) {
      std::map<std::size_t, double> behind = after;
      behind[ends + edge.from.index()] = -1;
      program.add_row(behind, 0, kFree);
    }
    program.add_row({{makespan, 1}, {ends + t, -1}, {none, -to_beat}}, 0, kFree);
  }
  return program.least();
}

/// A chain of layers, all of which send values on and get gradients back; nothing is tied.
Instance random_chain(std::mt19937& random) {
  Instance instance = random_instance(random, 1, 0);
  instance.layers.values.clear(), instance.layers.storages.clear();
  std::erase_if(instance.layers.parameters,
                [](const LayerParameter& parameter) { return parameter.users.size() > 1; });
  for (std::size_t l = 0; l + 1 < instance.layers.size(); ++l) {
    const auto id = static_cast<std::int64_t>(l);
    const Bytes bytes{1 + static_cast<std::int64_t>(random() % 900)};
    instance.layers.values.push_back({"v", LayerId{id}, {LayerId{id + 1}}, bytes, bytes, {}});
  }
  return instance;
}

/// The best bound of the game's weights, and what it says no weights go above.
std::pair<double, double> play(Candidates& candidates, CutBound& cut_bound, double to_beat) {
  CutMixture mixture(candidates, cut_bound, to_beat, nullptr);
  double best = 0;
  while (const auto found = mixture.next())
    if (const double bound = found->scaled / mixture.weights().sum; bound > best)
      best = bound, mixture.keep_weights();
  return {best, mixture.value()};
}

// Weights are rounded to one in a million or so, and the game ends 1e-6 of its units short.
TEST(CutMixture, EndsAtTheLeastMakespanOfAMixtureOfCuts) {
  std::mt19937 random(11);
  int free = 0, limited = 0, apart = 0;
  for (int round = 0; round < 600; ++round) {
    const Instance instance = random_chain(random);
    const Problem problem = instance.problem();
    const ScheduleSpec& spec = instance.schedules[0];
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const Best fitting = brute_force(problem, spec);
    if (std::isinf(fitting.time)) continue;
    const double to_beat = 1.05 * fitting.time;
    Candidates candidates(model, problem, spec);
    CutBound cut_bound(model, candidates.costs(), candidates.live(), candidates.memory_limit(),
                       candidates.stages());
    ASSERT_TRUE(cut_bound.enter(cut_bound.everything()));
    cut_bound.refresh_latencies();
    ASSERT_TRUE(cut_bound.always_linked());

    const Placement placement = placement_for(spec);
    std::optional<DependencyGraph> graph;
    std::vector<CutPrices> all, fit;
    for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
      const StageCosts costs = stage_costs(problem.layers, partition, placement, problem.cluster);
      if (!graph)
        graph = dependencies(lower(candidates.schedule(), costs, placement), stage_graph(costs),
                             placement, Semantics{});
      all.push_back({slot_durations(graph->slots, costs), {}});
      const Cuts cuts = *model.cuts(partition);
      for (std::size_t r = 0; r < spec.ranks; ++r)
        for (const LiveMoment& moment : cut_bound.moments(r))
          all.back().excess.push_back(candidates.live().held(model, moment, cuts, r) -
                                      static_cast<double>(problem.memory_limit[r].value));
      if (std::ranges::all_of(all.back().excess, [](double e) { return e <= 0; }))
        fit.push_back(all.back());
    });
    const auto [bound, value] = play(candidates, cut_bound, to_beat);
    const double low = mixed_makespan(*graph, all, to_beat),
                 high = mixed_makespan(*graph, fit, to_beat), close = 1e-3 * to_beat;
    // Which of the cuts that do not fit the bound leaves out is its own affair.
    ASSERT_GE(value, low - close) << round;
    ASSERT_LE(value, high + close) << round;
    ASSERT_NEAR(std::min(bound, to_beat), std::min(value, to_beat), close) << round;
    const bool pressed = fit.size() < all.size();
    ++(pressed ? limited : free), apart += pressed && high > low + 10 * close;
  }
  EXPECT_GT(free, 50);
  EXPECT_GT(limited, 40);
  EXPECT_GT(apart, 10) << "limits that matter";
}

#else

TEST(CutMixture, EndsAtTheLeastMakespanOfAMixtureOfCuts) {
  GTEST_SKIP() << "built without Clp (Debian: coinor-libclp-dev)";
}

#endif

}  // namespace
}  // namespace pfeife
