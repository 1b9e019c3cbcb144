// Reference mode: its schedules are those of the published program, its cuts follow its rules, its
// plans are what they say.
#include "planner/search/reference/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "planner/cost/estimate/evaluate.h"
#include "planner/schedules/families.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

TEST(Reference, TriesTheSchedulesOfThePublishedProgramButThoseThatDeadlock) {
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::vector<std::size_t>>> published;
  for (const OracleRow& row : oracle_rows("oracles/looped_makespans.csv")) {
    const auto count = [&](const char* key) { return std::stoul(row.at(key)); };
    published[{count("D"), count("N")}].insert({count("V"), count("B_l"), count("B_f")});
  }
  ASSERT_GE(published.size(), 5U);
  for (const auto& [size, points] : published) {
    std::set<std::vector<std::size_t>> ours;
    for (const ScheduleSpec& spec : reference_set(size.first, size.second, {1, 2, 3}))
      ours.insert({spec.stages_per_rank, *spec.loop_batch, spec.prefetch.at(0)});
    EXPECT_EQ(ours, points) << size.first << ' ' << size.second;
  }
  EXPECT_EQ(reference_set(4, 3, {1, 2}).size(), 4U);  // N < D: one stage a rank only
}

/// Segments with the given parameters and nothing else.
std::vector<double> sums(const std::vector<double>& values) {
  std::vector<double> prefix{0};
  for (const double value : values) prefix.push_back(prefix.back() + value);
  return prefix;
}

TEST(Reference, FirstCutsFillBucketsAndLetTheLastNodeCountForTheNext) {
  // Mean 4. 3 + 1 is not above it, 3 + 1 + 2 is: a cut behind node 2, whose 2 count for the next
  // bucket. 2 + 2 is not above it, 2 + 2 + 2 is: a cut behind node 4.
  const auto always = [](const Cuts&) { return true; };
  const std::vector<double> nothing(7, 0);
  EXPECT_EQ(reference_cuts(sums({3, 1, 2, 2, 2, 2}), nothing, 3, always), (Cuts{0, 3, 5, 6}));
  // Without parameters in the bucket there is no cut; too few cuts fail.
  EXPECT_EQ(reference_cuts(nothing, sums({3, 1, 2, 2, 2, 2}), 3, always), std::nullopt);
}

TEST(Reference, FirstCutsThatDoNotFitShiftToTheLeft) {
  // Two cuts: delta = 0.08 p_1; the first moves by delta, the second by delta (0.9 / 2 + 0.1).
  const std::vector<double> weight = [] {
    std::vector<double> prefix{0};
    for (int l = 0; l < 100; ++l) prefix.push_back(prefix.back() + (l < 50 ? 0.68 : 1.3));
    return prefix;
  }();
  std::vector<Cuts> asked;
  const auto first_two = [&](const Cuts& cuts) {
    asked.push_back(cuts);
    return asked.size() == 2;
  };
  const auto cuts = reference_cuts(weight, std::vector<double>(101, 0), 3, first_two);
  ASSERT_EQ(asked.size(), 2U);
  const double delta = 0.08 * asked[0][1];
  EXPECT_EQ(asked[1][1], asked[0][1] - std::lround(delta));
  EXPECT_EQ(asked[1][2], asked[0][2] - std::lround(delta * 0.55));
  EXPECT_EQ(cuts, asked[1]);
  // Never feasible: the first ones.
  asked.clear();
  const auto none = reference_cuts(weight, std::vector<double>(101, 0), 3, [&](const Cuts& tried) {
    asked.push_back(tried);
    return false;
  });
  EXPECT_EQ(asked.size(), 11U);
  EXPECT_EQ(none, asked[0]);
}

TEST(Reference, FindsTheOptimaOfFigure4) {
  Layers layers;  // fifteen operators of forward 1, backward 2, all alike
  for (int l = 0; l < 15; ++l) {
    const LayerId id{l};
    Layer layer;
    layer.times = {{Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0}}};
    layers.layers.push_back(layer);
    layers.parameters.push_back({"w", Bytes{1}, Bytes{1}, Bytes{2}, {id}, {Nanoseconds{0}}});
    if (l > 0) layers.values.push_back({"x", LayerId{l - 1}, {id}, Bytes{0}, Bytes{1}, {}});
  }
  DeviceKind kind;
  const Cluster cluster = uniform_cluster(3, kind, {1e15}, Nanoseconds{0});
  Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
  for (int r = 0; r < 3; ++r) problem.device_of_rank.emplace_back(r);
  problem.memory_limit.assign(3, Bytes{1 << 20});
  problem.schedules = {ScheduleSpec{"looped", 3, 3, 1, 3, {0}}};
  Answer outcome = reference_search(problem);
  ASSERT_FALSE(outcome.plans.empty());
  EXPECT_EQ(outcome.plans[0].estimate, Nanoseconds{72});
  EXPECT_EQ(outcome.plans[0].partition, (Partition{{5, 10}}));
  problem.schedules = reference_set(3, 3, {1});
  outcome = reference_search(problem);
  EXPECT_EQ(outcome.plans[0].estimate, Nanoseconds{69});
  EXPECT_THAT(outcome.plans[0].partition.cuts,
              ::testing::AnyOf(std::vector<std::int32_t>{5, 10}, std::vector<std::int32_t>{4, 10}));
}

TEST(Reference, PlansAreWhatTheySayFitAndAreNeverBetterThanOurs) {
  std::mt19937 random(59);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    RandomShape shape;
    shape.layers = 12 + random() % 12;
    const Layers layers = random_layers(random, shape);
    const std::size_t ranks = 2 + random() % 2, microbatches = 2 + random() % 4;
    const Cluster cluster = random_cluster(random, ranks, true);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    for (std::size_t r = 0; r < ranks; ++r) {
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
      problem.memory_limit.emplace_back(round % 2 == 0 ? 1 << 30 : 6000 + random() % 9000);
    }
    problem.memory_rule = round % 3 == 0 ? MemoryRule::Reference : MemoryRule::Lifetimes;
    problem.schedules = reference_set(ranks, microbatches, {1 + random() % 2});
    const Answer outcome = reference_search(problem);
    if (outcome.plans.empty()) continue;
    ++found;
    const Priced& plan = outcome.plans[0];
    expect_as_told(problem, plan);
    const Answer ours = search(problem, {.iterations = 30});
    ASSERT_FALSE(ours.plans.empty());
    EXPECT_LE(ours.plans[0].estimate, plan.estimate) << round;
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace pfeife
