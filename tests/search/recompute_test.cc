// The choice of recomputed stages, against brute force over cuts, schedules and choices.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "planner/search/price/recomputation.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// The fastest plan of `problem` over all cuts and choices of recomputed stages.
std::int64_t brute_force(const Problem& problem) {
  std::int64_t best = kNever;
  for (const ScheduleSpec& spec : problem.schedules)
    if (const Best one = brute_force(problem, spec); !one.at.empty())
      best = std::min(best, static_cast<std::int64_t>(one.time));
  return best;
}

/// No plan is faster, whenever it receives its messages: what can be proven.
std::int64_t floor_of(const Problem& problem) {
  std::int64_t floor = kNever;
  for (const ScheduleSpec& spec : problem.schedules)
    if (const double one = brute_force(problem, spec).floor;
        one < std::numeric_limits<double>::infinity())
      floor = std::min(floor, static_cast<std::int64_t>(one));
  return floor;
}

struct RecomputedCase {
  Layers layers;
  Cluster cluster;
  std::vector<ScheduleSpec> schedules;
  std::size_t ranks = 0;
  Bytes limit{0};

  Problem problem(Recompute recompute) const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = schedules};
    for (std::size_t r = 0; r < ranks; ++r)
      p.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    p.memory_limit.assign(ranks, limit);
    p.recompute = recompute;
    return p;
  }
};

/// Memory limits about where it becomes necessary to recompute.
RecomputedCase random_recomputed_case(std::mt19937& random, std::size_t layers, std::size_t ranks,
                                      const std::vector<std::size_t>& stages_per_rank) {
  RecomputedCase instance;
  RandomShape shape;
  shape.layers = layers, shape.illegal_cuts = false;
  instance.layers = random_layers(random, shape);
  for (Layer& layer : instance.layers.layers) layer.saved.value *= 4;
  instance.ranks = ranks;
  instance.cluster = random_cluster(random, ranks, true);
  for (int k = 0; k < 2; ++k)
    instance.schedules.push_back(random_spec(random, ranks, 1 + random() % 4, stages_per_rank));
  instance.schedules[1].microbatches = instance.schedules[0].microbatches;
  if (refusal(instance.schedules[1])) instance.schedules.pop_back();
  instance.limit = Bytes{static_cast<std::int64_t>((9000 + random() % 12000) * layers / 8 / ranks)};
  return instance;
}

TEST(Recompute, IsTheBestChoiceOfAllOnTinyProblems) {
  std::mt19937 random(3);
  int needed = 0, faster = 0, never = 0;
  for (int round = 0; round < 300; ++round) {
    const RecomputedCase instance =
        random_recomputed_case(random, 5 + random() % 3, 1 + random() % 2, {1, 2});
    const std::int64_t none = brute_force(instance.problem(Recompute::None));
    for (const Recompute mode : {Recompute::None, Recompute::Full, Recompute::Choose}) {
      const Problem problem = instance.problem(mode);
      const std::int64_t best = mode == Recompute::None ? none : brute_force(problem);
      const Answer outcome = search(problem, {.iterations = 30});
      if (best == kNever) {
        EXPECT_TRUE(outcome.plans.empty()) << round;
        ASSERT_TRUE(outcome.infeasible) << round;
        EXPECT_EQ(outcome.infeasible->proven, floor_of(problem) == kNever) << round;
      } else {
        ASSERT_FALSE(outcome.plans.empty()) << round;
        EXPECT_EQ(outcome.plans.front().estimate.count(), best) << round;
        EXPECT_EQ(outcome.bound->time.count(), floor_of(problem)) << round;
      }
      if (mode != Recompute::Choose) continue;
      needed += none == kNever && best != kNever, faster += none != kNever && best < none;
      never += best == kNever;
    }
  }
  EXPECT_GT(needed, 5);
  EXPECT_GT(faster, 5);
  EXPECT_GT(never, 5);
}

// As torchgpipe's checkpoint='except_last': what a stage runs forward last keeps all.
TEST(Recompute, ExceptTheLastMicrobatchIsTheBestChoiceOfAllOnTinyProblems) {
  std::mt19937 random(5);
  int faster = 0, less_room = 0, never = 0;
  for (int round = 0; round < 200; ++round) {
    const RecomputedCase instance =
        random_recomputed_case(random, 5 + random() % 3, 1 + random() % 2, {1, 2});
    for (const Recompute mode : {Recompute::Full, Recompute::Choose}) {
      const std::int64_t plain = brute_force(instance.problem(mode));
      Problem problem = instance.problem(mode);
      problem.recompute_except_last = true;
      const std::int64_t best = brute_force(problem);
      const Answer outcome = search(problem, {.iterations = 30, .certificate = true});
      EXPECT_FALSE(outcome.certificate) << "none speaks of microbatches that differ";
      if (best == kNever) {
        EXPECT_TRUE(outcome.plans.empty()) << round;
        ASSERT_TRUE(outcome.infeasible) << round;
        EXPECT_EQ(outcome.infeasible->proven, floor_of(problem) == kNever) << round;
      } else {
        ASSERT_FALSE(outcome.plans.empty()) << round;
        EXPECT_EQ(outcome.plans.front().estimate.count(), best) << round;
        EXPECT_LE(outcome.bound->time.count(), best) << round;
        expect_as_told(problem, outcome.plans.front());
      }
      faster += best < plain, less_room += plain != kNever && best > plain;
      never += best == kNever;
    }
  }
  EXPECT_GT(faster, 100);
  EXPECT_GT(less_room, 5);
  EXPECT_GT(never, 5);
}

TEST(Recompute, ExceptLastIsNeverBoundedAboveTheBestChoiceWhereNotAllAreTried) {
  std::mt19937 random(18);
  int recomputed = 0;
  for (int round = 0; round < 12; ++round) {
    const RecomputedCase instance = random_recomputed_case(random, 9, 2, {4});  // eight stages
    for (const Recompute mode : {Recompute::Full, Recompute::Choose}) {
      Problem problem = instance.problem(mode);
      problem.recompute_except_last = true;
      const std::int64_t best = brute_force(problem);
      const Answer outcome = search(problem, {.iterations = 30});
      if (outcome.plans.empty()) {
        EXPECT_TRUE(best == kNever || !outcome.infeasible->proven) << round;
        continue;
      }
      EXPECT_LE(outcome.bound->time.count(), best) << round;
      EXPECT_GE(outcome.plans.front().estimate.count(), best) << round;
      expect_as_told(problem, outcome.plans.front());
      recomputed += outcome.plans.front().activations.except_last;
    }
  }
  EXPECT_GT(recomputed, 4);
}

TEST(Recompute, StagesAreNamedByTheirNumbersOrAllAtOnce) {
  const auto text = [](std::vector<bool> stages, bool except_last = false) {
    return to_string(Activations{.stages = std::move(stages), .except_last = except_last});
  };
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({false, false}, true), "");
  EXPECT_EQ(text({false, true, false, true}), "recompute=1 3");
  EXPECT_EQ(text({true, true}, true), "recompute=all except last");
  EXPECT_EQ(text({true, true, false, true, true, true, false, true}), "recompute=0-1 3-5 7");
}

TEST(Recompute, NeverBoundsAboveTheBestChoiceWhereNotAllAreTried) {
  std::mt19937 random(8);
  int recomputed = 0, proven = 0;
  for (int round = 0; round < 16; ++round) {
    const RecomputedCase instance = random_recomputed_case(random, 9, 2, {4});  // eight stages
    const Problem problem = instance.problem(Recompute::Choose);
    const std::int64_t best = brute_force(problem);
    const Answer outcome = search(problem, {.iterations = 30});
    if (outcome.plans.empty()) {
      EXPECT_TRUE(best == kNever || !outcome.infeasible->proven) << round;
      continue;
    }
    const Priced& plan = outcome.plans.front();
    EXPECT_LE(outcome.bound->time.count(), best) << round;
    EXPECT_GE(plan.estimate.count(), best) << round;
    proven += outcome.bound->time == plan.estimate;
    expect_as_told(problem, plan);
    recomputed += !plan.activations.stages.empty();
  }
  EXPECT_GT(recomputed, 2);
  EXPECT_GT(proven, 1);
}

// What a rank's stages have chosen before is remembered, by their ends and by the margin.
TEST(Recompute, IsChosenAsIfNothingHadBeenAskedBefore) {
  std::mt19937 random(27);
  int chosen = 0, different = 0, forced = 0;
  for (int round = 0; round < 40; ++round) {
    const RecomputedCase instance = random_recomputed_case(random, 12, 2, {1, 2, 4});
    const ScheduleSpec& spec = instance.schedules.front();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const std::vector<Bytes> limits(instance.ranks, instance.limit);
    const auto fresh = [&] { return Recomputation(generate(spec), placement_for(spec), limits); };
    Recomputation asked = fresh();
    std::vector<bool> before;
    for (int question = 0; question < 200; ++question) {
      std::set<std::int32_t> ends{0, model.last()};
      while (ends.size() <= spec.stages())
        ends.insert(static_cast<std::int32_t>(random() % static_cast<unsigned>(model.last())));
      const Cuts cuts(ends.begin(), ends.end());
      const std::vector<std::size_t> kind(spec.stages(), 0);
      const std::vector<double> margin(instance.ranks, static_cast<double>(random() % 3 * 2000));
      const auto expected = fresh().choose(model, cuts, kind, margin);
      const auto told = asked.choose(model, cuts, kind, margin);
      EXPECT_EQ(told.forced, expected.forced);
      EXPECT_EQ(told.chosen, expected.chosen);
      EXPECT_EQ(told.possible, expected.possible);
      // Forced is what does not fit with all others of the rank recomputed.
      for (std::size_t s = 0; s < spec.stages(); ++s) {
        std::vector<bool> others(spec.stages(), true);
        others[s] = false;
        const std::size_t rank = placement_for(spec).rank_of_stage[s].index();
        const double peak = asked.peak(model, cuts, rank, others);
        EXPECT_EQ(told.forced[s], peak > static_cast<double>(instance.limit.value));
        forced += told.forced[s];
      }
      chosen += told.any(), different += told.chosen != before;
      before = told.chosen;
    }
  }
  EXPECT_GT(chosen, 1000);
  EXPECT_GT(different, 1000);
  EXPECT_GT(forced, 1000);
}

TEST(Recompute, OfGivenCutsIsNeverBoundedAboveTheBestChoice) {
  std::mt19937 random(9);
  int below = 0, unsure = 0, never = 0;
  for (int round = 0; round < 150; ++round) {
    RecomputedCase instance =
        random_recomputed_case(random, 8 + random() % 3, 2, {4});  // eight stages
    instance.limit.value += 600 * (round % 10) - 3000;
    Problem problem = instance.problem(Recompute::Choose);
    for_each_partition(instance.layers, 8, [&](const Partition& cuts) {
      if (!problem.cuts || random() % 4 == 0) problem.cuts = cuts;
    });
    const double best = best_at_given_cuts(problem);
    const Answer outcome = search(problem, {});
    if (outcome.plans.empty()) {
      const bool none = best == std::numeric_limits<double>::infinity();
      ASSERT_TRUE(none || !outcome.infeasible->proven) << round;
      never += outcome.infeasible->proven, unsure += !outcome.infeasible->proven;
      continue;
    }
    ASSERT_LE(static_cast<double>(outcome.bound->time.count()), best) << round;
    below += static_cast<double>(outcome.plans[0].estimate.count()) > best;
  }
  EXPECT_GT(below, 0);
  EXPECT_GT(unsure, 0);
  EXPECT_GT(never, 0);
}

TEST(Recompute, WithoutPressureNothingIsRecomputedAndThePlanIsTheSame) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    RecomputedCase instance = random_recomputed_case(random, 8, 2, {1, 2});
    instance.limit = Bytes{1 << 30};
    const Answer none = search(instance.problem(Recompute::None), {.iterations = 30});
    const Answer choose = search(instance.problem(Recompute::Choose), {.iterations = 30});
    EXPECT_EQ(none.plans, choose.plans);
    EXPECT_EQ(none.bound->time, choose.bound->time);
  }
}

}  // namespace
}  // namespace pfeife
