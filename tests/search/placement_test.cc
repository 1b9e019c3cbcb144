// Stages on other ranks than a family has them.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/zb_greedy.h"
#include "planner/search/steps/placements.h"
#include "tests/search/as_told.h"
#include "tests/search/built_instance.h"

namespace pfeife {
namespace {

/// The plans of zb_greedy where the family has its stages.
std::vector<Priced> plans_by_family(const Problem& problem) {
  return search(problem, {.iterations = 20}).all;
}

/// What the step adds to a pool of these plans, the fastest first.
std::vector<Priced> placed_plans(const Problem& problem, const std::vector<Priced>& plans,
                                 const SearchOptions& options) {
  Pool pool(problem.memory_limit);
  pool.add(plans);
  add_placed_plans(problem, options, search, pool);
  std::vector<Priced> added;
  for (const Priced& plan : pool.answer().plans)
    if (std::ranges::find(plans, plan) == plans.end()) added.push_back(plan);
  return added;
}

/// Calls `visit` with every placement of so many stages that leaves no rank without one.
void for_each_placement(std::size_t stages, std::size_t ranks,
                        const std::function<void(const std::vector<RankId>&)>& visit) {
  std::size_t all = 1;
  for (std::size_t s = 0; s < stages; ++s) all *= ranks;
  for (std::size_t number = 0; number < all; ++number) {
    std::vector<RankId> rank_of_stage;
    for (std::size_t s = 0, rest = number; s < stages; ++s, rest /= ranks)
      rank_of_stage.emplace_back(rest % ranks);
    if (std::set<RankId>(rank_of_stage.begin(), rank_of_stage.end()).size() == ranks)
      visit(rank_of_stage);
  }
}

/// The least time of the orders that the greedy makes, over all placements and cuts of up to so
/// many stages.
Nanoseconds least_of_all(const Problem& problem, std::size_t most_stages) {
  Nanoseconds least = Nanoseconds::max();
  const std::size_t microbatches = problem.schedules.front().microbatches;
  for (std::size_t stages = problem.device_of_rank.size(); stages <= most_stages; ++stages)
    for_each_partition(problem.layers, stages, [&](const Partition& cuts) {
      for_each_placement(stages, problem.device_of_rank.size(), [&](const auto& rank_of_stage) {
        const Placement placement{rank_of_stage, problem.device_of_rank};
        const StageCosts costs = stage_costs(problem.layers, cuts, placement, problem.cluster);
        const Schedule order =
            schedule_of(zero_bubble_order(costs, placement, microbatches, {}, {.moves = 30}).order);
        least = std::min(
            least, evaluate(problem.layers, problem.cluster, order, placement, cuts).estimate);
      });
    });
  return least;
}

Layers layers_of(const std::vector<std::int64_t>& times) {
  Layers layers;
  for (const std::int64_t time : times) {
    const Nanoseconds ns{time};
    layers.layers.push_back({.name = "l", .times = {{ns, ns, ns, Nanoseconds{0}}}});
    if (layers.size() == 1) continue;
    layers.values.push_back({.name = "v",
                             .producer = LayerId{layers.size() - 2},
                             .consumers = {LayerId{layers.size() - 1}},
                             .bytes = Bytes{1},
                             .gradient_bytes = Bytes{1}});
  }
  return layers;
}

// Layers of 1, 3 and 2 on two ranks: one rank with 1 + 2 and the other with 3 have 9 of work each
// for each of four microbatches, but three layers make neither two nor four stages of that. The
// rank with 3 starts after the first layer: 1 + 36. With two stages some rank has 12: at least 48.
TEST(Placement, ThreeStagesOnTwoRanksAreTheBestByHand) {
  const Layers layers = layers_of({1000, 3000, 2000});
  const Cluster cluster = uniform_cluster(2, {}, {1e15}, Nanoseconds{0});
  const Problem problem{layers,
                        cluster,
                        {{"zb_greedy", 2, 4, 1, {}, {}}, {"zb_greedy", 2, 4, 2, {}, {}}},
                        {DeviceId{0}, DeviceId{1}},
                        {Bytes{1 << 20}, Bytes{1 << 20}},
                        std::nullopt};
  const std::vector<Priced> plans = plans_by_family(problem);
  ASSERT_FALSE(plans.empty());
  EXPECT_GE(plans.front().estimate, Nanoseconds{48'000});
  const std::vector<Priced> placed = placed_plans(problem, plans, {.iterations = 20});
  ASSERT_FALSE(placed.empty());
  const std::vector<RankId>& rank = placed.front().placement.rank_of_stage;
  ASSERT_EQ(rank.size(), 3u);
  EXPECT_EQ(rank[0], rank[2]);
  EXPECT_NE(rank[0], rank[1]);
  EXPECT_EQ(placed.front().estimate, Nanoseconds{37'000});
  EXPECT_EQ(schedule_name(placed.front().spec).find("zb_greedy, ranks="), 0u);
}

TEST(Placement, PlansAreWhatTheySayFitAndAreFaster) {
  std::size_t found = 0, uneven = 0;
  for (unsigned seed = 0; seed < 16; ++seed) {
    std::mt19937 random(seed);
    const BuiltInstance instance = random_built_instance(random, 9, seed % 2 == 0);
    Problem problem = instance.problem({instance.built(1), instance.built(2), instance.folded()});
    if (seed % 3 == 0) problem.recompute = Recompute::Choose;
    const std::vector<Priced> plans = plans_by_family(problem);
    const std::vector<Priced> placed = placed_plans(problem, plans, {.iterations = 20});
    EXPECT_EQ(placed, placed_plans(problem, plans, {.iterations = 20, .threads = 3}));
    for (const Priced& plan : placed) {
      expect_as_told(problem, plan);
      for (const ScheduleSpec& listed : problem.schedules)  // a name that is listed comes first
        EXPECT_EQ(listed == plan.spec,
                  placement_for(listed).rank_of_stage == plan.placement.rank_of_stage);
      EXPECT_LT(plan.estimate, plans.front().estimate);
      ++found, uneven += plan.placement.stages() % instance.ranks != 0;
    }
  }
  EXPECT_GT(found, 10u);
  EXPECT_GT(uneven, 3u);
}

TEST(Placement, FewAreFasterThanTheStepOfAllPlacementsAndCuts) {
  double behind = 0, gained = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    const std::size_t ranks = seed == 4 ? 3 : 2;
    const Layers layers =
        random_layers(random, {.layers = 6, .skip_share = 0, .illegal_cuts = false});
    const Cluster cluster = random_cluster(random, ranks, false);
    Problem problem{layers, cluster, {}, {}, {}, std::nullopt};
    for (const std::size_t v : {1, 2})
      problem.schedules.push_back({"zb_greedy", ranks, 3, v, {}, {}});
    for (std::size_t r = 0; r < ranks; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit.assign(ranks, Bytes{1 << 30});
    const std::vector<Priced> plans = plans_by_family(problem);
    const std::vector<Priced> placed = placed_plans(problem, plans, {.iterations = 20});
    const double before = static_cast<double>(plans.front().estimate.count());
    const double step =
        placed.empty() ? before : static_cast<double>(placed.front().estimate.count());
    const auto least = static_cast<double>(least_of_all(problem, ranks == 2 ? 6 : 5).count());
    behind = std::max(behind, step / least - 1), gained = std::max(gained, before / step - 1);
  }
  EXPECT_LT(behind, 0.02);
  EXPECT_GT(gained, 0.04);
}

// The cuts are given: only ranks change.
TEST(Placement, KeepsGivenCuts) {
  const Layers layers = layers_of({1000, 3000, 2000, 2000});
  const Cluster cluster = uniform_cluster(2, {}, {1e15}, Nanoseconds{0});
  const Problem problem{layers,
                        cluster,
                        {{"zb_greedy", 2, 4, 2, {}, {}}},
                        {DeviceId{0}, DeviceId{1}},
                        {Bytes{1 << 20}, Bytes{1 << 20}},
                        Partition{{0, 1, 2}}};
  const std::vector<Priced> plans = plans_by_family(problem);  // round robin: 3 and 5
  EXPECT_GE(plans.front().estimate, Nanoseconds{4 * 15'000});
  const std::vector<Priced> placed = placed_plans(problem, plans, {.iterations = 20});
  ASSERT_FALSE(placed.empty());  // 1 + 3 and 2 + 2: the second rank begins after 4
  EXPECT_EQ(placed.front().partition, *problem.cuts);
  EXPECT_EQ(placed.front().estimate, Nanoseconds{4 * 12'000 + 4'000});
}

TEST(Placement, IsOfOrdersThatAreBuilt) {
  const Layers layers = layers_of({1000, 3000, 2000});
  const Cluster cluster = uniform_cluster(2, {}, {1e15}, Nanoseconds{0});
  const Problem problem{layers,
                        cluster,
                        {{"1f1b", 2, 4, 1, {}, {}}},
                        {DeviceId{0}, DeviceId{1}},
                        {Bytes{1 << 20}, Bytes{1 << 20}},
                        std::nullopt};
  EXPECT_TRUE(placed_plans(problem, plans_by_family(problem), {.iterations = 5}).empty());
  EXPECT_TRUE(placed_plans(problem, {}, {.iterations = 5}).empty());
  ScheduleSpec spec{"1f1b", 2, 4, 1, {}, {}};
  spec.rank_of_stage = {RankId{1}, RankId{0}};
  EXPECT_TRUE(refusal(spec));
  spec.family = "zb_greedy";
  EXPECT_FALSE(refusal(spec));
  spec.rank_of_stage = {RankId{1}, RankId{1}};  // leaves rank 0 without a stage
  EXPECT_TRUE(refusal(spec));
  spec.rank_of_stage = {RankId{0}, RankId{2}};
  EXPECT_TRUE(refusal(spec));
  spec.rank_of_stage = {RankId{0}, RankId{1}, RankId{1}, RankId{0}};  // two a rank, not one
  EXPECT_TRUE(refusal(spec));
}

}  // namespace
}  // namespace pfeife
