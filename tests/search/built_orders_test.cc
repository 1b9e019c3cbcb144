// Plans whose order is built for their costs: what the search returns is what it says, no order is
// below the bound that holds for any, and "nothing fits" is said of all orders.
#include "planner/search/orders/built_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/zb_greedy.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/cuts/min_max.h"
#include "tests/search/as_told.h"
#include "tests/search/built_instance.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

SearchOptions few_orders() { return {.iterations = 30}; }

TEST(BuiltOrders, PlansAreWhatTheySayAndNeverSlowerThanWithoutThem) {
  std::mt19937 random(23);
  int built_best = 0, feasible = 0, folded = 0;
  const auto rounds = static_cast<int>(instances(24));
  for (int round = 0; round < rounds; ++round) {
    const BuiltInstance instance = random_built_instance(random, 8 + random() % 8, round % 2 == 0);
    std::vector<ScheduleSpec> listed;
    for (int k = 0; k < 3; ++k)
      listed.push_back(random_spec(random, instance.ranks, instance.microbatches, {1, 2}));
    const Answer without = search(instance.problem(listed), few_orders());
    for (const ScheduleSpec& spec : {instance.built(1), instance.built(2), instance.folded()})
      listed.push_back(spec);
    const Problem problem = instance.problem(listed);
    const Answer with = search(problem, few_orders());
    if (!without.plans.empty()) {
      ASSERT_FALSE(with.plans.empty()) << round;
      EXPECT_LE(with.plans[0].estimate, without.plans[0].estimate) << round;
    }
    for (const Priced& plan : with.plans) {
      EXPECT_EQ(plan.order.has_value(), is_built(plan.spec));
      folded += plan.spec.family == "zbv_greedy";
      expect_as_told(problem, plan);
    }
    if (with.plans.empty()) continue;
    ++feasible, built_best += with.plans[0].order.has_value();
    ASSERT_TRUE(with.bound);
    EXPECT_LE(with.bound->time, with.plans[0].estimate);
  }
  EXPECT_GT(feasible, rounds / 2);
  EXPECT_GT(built_best, rounds / 6);
  EXPECT_GT(folded, rounds / 6);
}

TEST(BuiltOrders, OfRecomputedStagesAreWhatTheySayAndFitWhereOthersDoNot) {
  std::mt19937 random(29);
  int more = 0, choices = 0;
  const auto rounds = static_cast<int>(instances(40));
  for (int round = 0; round < rounds; ++round) {
    const BuiltInstance instance = random_built_instance(random, 8 + random() % 4, true);
    Problem problem =
        instance.problem({round % 3 == 0 ? instance.folded() : instance.built(1 + random() % 2)});
    const bool fits = !search(problem, few_orders()).plans.empty();
    for (const Recompute recompute : {Recompute::Full, Recompute::Choose}) {
      problem.recompute = recompute;
      const Answer outcome = search(problem, few_orders());
      if (outcome.plans.empty()) {
        EXPECT_FALSE(fits && recompute == Recompute::Choose) << round;
        continue;
      }
      more += !fits;
      const Priced& plan = outcome.plans[0];
      const std::vector<bool>& again = plan.activations.stages;
      choices += std::ranges::count(again, true) < std::ssize(again);
      if (recompute == Recompute::Full) {
        EXPECT_EQ(std::ranges::count(again, false), 0) << round;
      }
      ASSERT_TRUE(plan.order);
      expect_as_told(problem, plan);
      EXPECT_LE(outcome.bound->time, plan.estimate) << round;
    }
  }
  EXPECT_GT(more, 0);
  EXPECT_GT(choices, 0);
}

/// So many actions that cuts are searched by a chain of transfers, which a slow skip does not
/// follow.
TEST(BuiltOrders, AreFoundForManyMicrobatchesWhereASkipTakesLongerThanTheStagesBesideIt) {
  std::mt19937 random(37);
  BuiltInstance instance = random_built_instance(random, 6, false);
  instance.ranks = 3, instance.microbatches = 700;
  instance.memory_limit.assign(3, Bytes{1 << 30});
  instance.cluster = random_cluster(random, instance.ranks, true);
  instance.layers.values.clear(), instance.layers.storages.clear();
  for (std::int64_t l = 0; l + 1 < 6; ++l)
    instance.layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, Bytes{8}, Bytes{8}, {}});
  LayerValue& skip = instance.layers.values.front();
  skip.consumers.push_back(LayerId{5}), skip.transfer_time = Nanoseconds{1000000};
  const ScheduleSpec spec = instance.built(1);
  const Problem problem = instance.problem({spec});
  const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
  Candidates candidates(model, problem, {"1f1b", 3, 700, 1, {}, {}});
  ASSERT_TRUE(candidates.is_large());
  ASSERT_EQ(candidates.search_time(*model.cuts({{1, 3}})), std::numeric_limits<double>::infinity());
  const Answer outcome = search(problem, {.iterations = 1});
  ASSERT_FALSE(outcome.plans.empty());
  expect_as_told(problem, outcome.plans[0]);
}

TEST(BuiltOrders, NoScheduleOfAnyCutsIsBelowTheBoundForAnyOrder) {
  std::mt19937 random(31);
  double tightest = 0;
  for (int round = 0; round < 120; ++round) {
    BuiltInstance instance = random_built_instance(random, 6, false);
    const std::size_t stages_per_rank = 1 + random() % 2;
    const ScheduleSpec spec =
        stages_per_rank == 2 && round % 4 < 2 ? instance.folded() : instance.built(stages_per_rank);
    if (round % 2 == 0)  // one layer that decides
      for (LayerTimes& t : instance.layers.layers[random() % instance.layers.size()].times)
        t.forward *= 20, t.backward_input *= 20, t.backward_weight *= 20;
    const Problem problem = instance.problem({spec});
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const double bound = AnyOrder(model, problem, spec).bound();
    const Placement placement = placement_for(spec);
    std::vector<ScheduleSpec> others = search_set(instance.ranks, instance.microbatches,
                                                  std::vector<std::size_t>{stages_per_rank});
    std::erase_if(others, [&](const ScheduleSpec& s) { return placement_for(s) != placement; });
    for_each_partition(instance.layers, spec.stages(), [&](const Partition& cuts) {
      const auto check = [&](const Schedule& order) {
        const auto time = static_cast<double>(
            evaluate(instance.layers, instance.cluster, order, placement, cuts).estimate.count());
        EXPECT_GE(time, bound) << round;
        tightest = std::max(tightest, bound / time);
      };
      for (const ScheduleSpec& other : others) check(generate(other));
      const StageCosts costs = stage_costs(instance.layers, cuts, placement, instance.cluster);
      check(schedule_of(
          zero_bubble_order(costs, placement, instance.microbatches, {}, {.moves = 50}).order));
    });
  }
  EXPECT_GT(tightest, 0.95);
}

// More stages than there are layers: no plan of that many lowers the bound.
TEST(BuiltOrders, OfTooManyStagesDoNotLowerTheBound) {
  std::mt19937 random(61);
  int plans = 0;
  for (int round = 0; round < 40; ++round) {
    const BuiltInstance instance = random_built_instance(random, 6, false);
    const std::size_t many = 1 + instance.layers.size() / instance.ranks;
    const Problem one = instance.problem({instance.built(1)});
    const Problem both = instance.problem({instance.built(1), instance.built(many)});
    const Answer outcome = search(one, {.iterations = 10});
    if (outcome.plans.empty()) continue;
    ++plans;
    EXPECT_EQ(search(both, {.iterations = 10}).bound->time, outcome.bound->time) << round;
    EXPECT_EQ(work_bound(both), work_bound(one)) << round;
  }
  EXPECT_GT(plans, 20);
}

TEST(BuiltOrders, NothingFitsIsProvenWhereEvenOneMicrobatchDoesNot) {
  std::mt19937 random(41);
  int proven = 0, missed = 0, found = 0;
  const auto rounds = static_cast<int>(instances(60));
  for (int round = 0; round < rounds; ++round) {
    const BuiltInstance instance = random_built_instance(random, 6, true);
    const ScheduleSpec spec = instance.built(1);
    const Answer outcome = search(instance.problem({spec}), few_orders());
    // One microbatch, each rank with B or with I and W, whatever needs less.
    bool one_fits = false;
    const ScheduleSpec one{"gpipe", instance.ranks, 1, 1, {}, {}};
    const Schedule whole = generate(one);
    Schedule split;
    for (std::size_t r = 0; r < instance.ranks; ++r) {
      const StageId s{r};
      const MicrobatchId m{0};
      split.rows.push_back({forward(s, m), backward_input(s, m), backward_weight(s, m)});
    }
    for_each_partition(instance.layers, spec.stages(), [&](const Partition& cuts) {
      std::vector<Bytes> least(instance.ranks, Bytes{1 << 30});
      for (const Schedule& schedule : {whole, split}) {
        const Prices plan =
            evaluate(instance.layers, instance.cluster, schedule, placement_for(one), cuts);
        for (std::size_t r = 0; r < instance.ranks; ++r)
          least[r] = std::min(least[r], plan.peak_memory[r]);
      }
      one_fits = one_fits || std::ranges::equal(least, instance.memory_limit, std::less_equal{});
    });
    if (!outcome.plans.empty()) {
      EXPECT_TRUE(one_fits) << round;
      ++found;
    } else if (outcome.infeasible) {
      EXPECT_FALSE(outcome.infeasible->proven && one_fits) << round;
      proven += outcome.infeasible->proven, missed += !outcome.infeasible->proven && !one_fits;
    }
  }
  EXPECT_LT(missed * 3, proven);
  EXPECT_GT(proven, rounds / 16);
  EXPECT_GT(found, rounds / 16);
}

/// All rows in the order of one microbatch, then the next: no order holds less.
Schedule one_by_one(const BuiltInstance& instance) {
  Schedule schedule;
  schedule.rows.resize(instance.ranks);
  for (std::size_t m = 0; m < instance.microbatches; ++m)
    for (std::size_t r = 0; r < instance.ranks; ++r)
      for (const auto make : {forward, backward})
        schedule.rows[r].push_back(make(StageId{r}, MicrobatchId{m}));
  return schedule;
}

/// Against all cuts: what the named rank lacks is about the least by which limits must rise. Not
/// quite always: ranks whose stages send each other nothing run ahead, and what they send waits.
TEST(BuiltOrders, WhatIsSaidToLackIsTheLeastOfAllCuts) {
  std::mt19937 random(47);
  int compared = 0, near = 0;
  const auto rounds = static_cast<int>(instances(60));
  for (int round = 0; round < rounds; ++round) {
    const BuiltInstance instance = random_built_instance(random, 9, true);
    const ScheduleSpec spec = instance.built(1);
    const ScheduleSpec gpipe{"gpipe", instance.ranks, instance.microbatches, 1, {}, {}};
    const Answer outcome = search(instance.problem({gpipe, spec}), {.iterations = 20});
    if (!outcome.infeasible || !outcome.infeasible->proven) continue;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for_each_partition(instance.layers, spec.stages(), [&](const Partition& cuts) {
      const Prices plan = evaluate(instance.layers, instance.cluster, one_by_one(instance),
                                   placement_for(spec), cuts);
      std::int64_t most = 0;
      for (std::size_t r = 0; r < instance.ranks; ++r)
        most = std::max(most, (plan.peak_memory[r] - instance.memory_limit[r]).value);
      least = std::min(least, most);
    });
    const Bytes lack = outcome.infeasible->needed - outcome.infeasible->available;
    near += lack.value <= least + least / 50;
    ++compared;
  }
  EXPECT_GT(compared, rounds / 6);
  EXPECT_GE(near * 20, compared * 19);
}

TEST(BuiltOrders, GivenCutsGetAnOrderWithinTheirMemory) {
  std::mt19937 random(43);
  int built = 0;
  for (int round = 0; round < 30; ++round) {
    const BuiltInstance instance = random_built_instance(random, 9, round % 2 == 0);
    Problem problem = instance.problem({instance.built(1)});
    problem.cuts =
        equal_time_cuts(instance.layers, placement_for(problem.schedules[0]), instance.cluster);
    if (!problem.cuts) continue;
    const Answer outcome = search(problem, few_orders());
    if (outcome.plans.empty()) continue;
    ++built;
    ASSERT_TRUE(outcome.plans[0].order);
    EXPECT_EQ(outcome.plans[0].partition, *problem.cuts);
    expect_as_told(problem, outcome.plans[0]);
  }
  EXPECT_GT(built, 10);
}

// Searches that differ in the first call alone: what the second finds elsewhere does not depend on
// where the first has been, what the third finds does. What was found stays.
TEST(BuiltOrders, EveryOtherCallBeginsAnew) {
  std::mt19937 random(59);
  const auto cuts_of = [](const BuiltSearch& search) { return search.result().plan->partition; };
  int anew = 0, apart = 0;
  for (int round = 0; round < 20; ++round) {
    BuiltInstance instance = random_built_instance(random, 40, false);
    instance.ranks = 3, instance.microbatches = 6;
    instance.cluster = random_cluster(random, instance.ranks, true);
    instance.memory_limit.assign(instance.ranks, Bytes{1 << 30});
    const Problem problem = instance.problem({instance.built(2)});
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    std::vector<Partition> second, third;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      BuiltSearch search(model, problem, problem.schedules[0], pfeife::search);
      search.work({}, 3, seed);
      if (!search.result().plan) break;
      const Partition first = cuts_of(search);
      Nanoseconds before = search.result().plan->estimate;
      search.work({}, 3, 100);
      if (cuts_of(search) != first) second.push_back(cuts_of(search));
      EXPECT_LE(search.result().plan->estimate, before);
      const Partition best = cuts_of(search);
      before = search.result().plan->estimate;
      search.work({}, 3, 101);
      if (cuts_of(search) != best) third.push_back(cuts_of(search));
      EXPECT_LE(search.result().plan->estimate, before);
    }
    for (const Partition& cuts : second) EXPECT_EQ(cuts, second[0]) << round;
    anew += second.size() > 1;
    apart += std::ranges::adjacent_find(third, std::not_equal_to{}) != third.end();
  }
  EXPECT_GT(anew, 2);
  EXPECT_GT(apart, 2);
}

TEST(BuiltOrders, AreTheSameForAnyNumberOfThreads) {
  std::mt19937 random(47);
  const BuiltInstance instance = random_built_instance(random, 14, false);
  const Problem problem =
      instance.problem({instance.built(1), instance.built(2), instance.built(3), instance.folded(),
                        ScheduleSpec{"1f1b", instance.ranks, instance.microbatches, 1, {}, {}}});
  SearchOptions one = few_orders(), three = few_orders();
  three.threads = 3;
  const Answer a = search(problem, one), b = search(problem, three);
  EXPECT_EQ(a.plans, b.plans);
  EXPECT_EQ(a.candidates, b.candidates);
}

}  // namespace
}  // namespace pfeife
