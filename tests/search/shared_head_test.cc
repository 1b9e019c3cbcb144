// Schedules whose ranks share the output layer, found beside the others: against brute force over
// all cuts, and what the bound and the judge say of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/price/price.h"
#include "tests/search/random_instance.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

/// Random layers, the first and the last of which all ranks can divide.
Layers random_words(std::mt19937& random, std::size_t count, std::size_t ranks) {
  Layers layers =
      random_layers(random, {.layers = count, .skip_share = 0.3, .illegal_cuts = false});
  const auto time = [&](std::int64_t most) {
    return Nanoseconds{static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most))};
  };
  const auto bytes = [&] { return Bytes{static_cast<std::int64_t>(random() % 300)}; };
  layers.words = WordShare{.ranks = ranks,
                           .layers = {LayerId{0}, LayerId{count - 1}},
                           .output = {time(400), time(400), time(400), time(50)},
                           .input = time(100),
                           .saved = bytes(),
                           .temporary = bytes(),
                           .parameters = bytes(),
                           .gradients = bytes(),
                           .optimizer_state = bytes(),
                           .broadcast = time(50),
                           .scalars = time(20),
                           .gradient = time(50)};
  return layers;
}

Problem problem_with_words(const Layers& layers, const Cluster& cluster, std::size_t ranks,
                           std::size_t microbatches, Bytes limit) {
  Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
  for (std::size_t r = 0; r < ranks; ++r) problem.device_of_rank.emplace_back(r);
  problem.memory_limit.assign(ranks, limit);
  const std::vector<std::string> names{"1f1b", "vocab_1", "vocab_2", "interlaced"};
  problem.schedules = search_set(ranks, microbatches, std::vector<std::size_t>{1, 2}, names);
  return problem;
}

Nanoseconds fastest_with_shares(const Problem& problem, const ScheduleSpec& spec) {
  Nanoseconds best = Nanoseconds::max();
  for_each_partition(problem.layers, spec.stages(), [&](const Partition& cuts) {
    const Prices prices = evaluate(problem.layers, problem.cluster, generate(spec),
                                   placement_for(spec), cuts, MemoryRule::Lifetimes);
    for (std::size_t r = 0; r < spec.ranks; ++r)
      if (prices.peak_memory[r] > problem.memory_limit[r]) return;
    best = std::min(best, prices.estimate);
  });
  return best;
}

TEST(SharedHeadSearch, OfTwoRanksIsTheFastestOfAllCutsAndNoneIsBelowTheBound) {
  std::mt19937 random(11);
  for (int instance = 0; instance < 20; ++instance) {
    const Layers layers = random_words(random, 6, 2);
    const Cluster cluster = random_cluster(random, 2, false);
    const Problem problem =
        problem_with_words(layers, cluster, 2, 1 + random() % 6, Bytes{std::int64_t{1} << 30});
    ASSERT_EQ(std::ranges::count_if(problem.schedules, shares_head), 3);  // of one stage a rank
    const Answer answer = search(problem, {.keep = 20, .iterations = 30, .certificate = true});
    ASSERT_TRUE(answer.bound.has_value());
    EXPECT_EQ(answer.certificate, nullptr);
    Nanoseconds fastest = Nanoseconds::max();
    for (const ScheduleSpec& spec : problem.schedules) {
      const Nanoseconds best = fastest_with_shares(problem, spec);
      fastest = std::min(fastest, best);
      EXPECT_LE(answer.bound->time, best) << schedule_name(spec);
      Problem alone = problem;
      alone.schedules = {spec};
      EXPECT_LE(work_bound(alone), static_cast<double>(best.count())) << schedule_name(spec);
      if (!shares_head(spec)) continue;
      const auto found = std::ranges::find(answer.all, spec, &Priced::spec);
      ASSERT_NE(found, answer.all.end()) << schedule_name(spec);
      EXPECT_EQ(found->estimate, best) << schedule_name(spec) << " " << instance;
    }
    EXPECT_EQ(answer.plans.front().estimate, fastest);
  }
}

// What is recomputed where memory is short fits, and the judge, who knows nothing of how rows are
// made, finds nothing in them.
TEST(SharedHeadSearch, OfFourRanksFitsAndTheJudgeFindsNothing) {
  std::mt19937 random(12);
  std::size_t recomputed = 0, shared = 0;
  for (int instance = 0; instance < 8; ++instance) {
    const Layers layers = random_words(random, 9, 4);
    const Cluster cluster = random_cluster(random, 4, true);
    Problem problem = problem_with_words(layers, cluster, 4, 6,
                                         Bytes{3000 + static_cast<std::int64_t>(random() % 6000)});
    problem.recompute = Recompute::Choose;
    const Answer answer = search(problem, {.keep = 20, .iterations = 20});
    EXPECT_EQ(answer.plans.empty(), answer.infeasible.has_value());
    for (const Priced& plan : answer.all) {
      if (!shares_head(plan.spec)) continue;
      ++shared, recomputed += plan.activations.recomputes() ? 1 : 0;
      EXPECT_LE(answer.bound->time, plan.estimate);
      for (std::size_t r = 0; r < 4; ++r) EXPECT_LE(plan.peak_memory[r], problem.memory_limit[r]);
      const Requirements needs{stage_graph(plan.rows->costs), 6, true, 1};
      for (const Violation& violation : validate(plan.rows->lowered, needs))
        ADD_FAILURE() << name_of(plan) << ": " << violation.message;
    }
  }
  EXPECT_GT(shared, 6U);
  EXPECT_GT(recomputed, 0U);
}

// By hand: the words of two ranks, nothing else in their layers. F, B, S and T of 10, 20, 3 and 6
// (I), 4 (W) and 2 (lookup) ns; a rank does all of it N times, and nothing is faster.
TEST(SharedHeadSearch, TheBoundHasTheSharesOfEveryRank) {
  std::mt19937 random(13);
  Layers layers = random_words(random, 4, 2);
  layers.values.clear(), layers.storages.clear(), layers.parameters.clear();
  for (std::size_t l = 0; l < 4; ++l) {
    if (l > 0) layers.values.push_back({.producer = LayerId{l - 1}, .consumers = {LayerId{l}}});
    for (LayerTimes& times : layers.layers[l].times)
      times = {Nanoseconds{10}, Nanoseconds{12}, Nanoseconds{8}, Nanoseconds{0}};
  }
  layers.words->output = {Nanoseconds{3}, Nanoseconds{6}, Nanoseconds{4}, Nanoseconds{0}};
  layers.words->input = Nanoseconds{2};
  const Cluster cluster = uniform_cluster(2, {.memory = kGiB}, {1e15}, Nanoseconds{0});
  Problem problem = problem_with_words(layers, cluster, 2, 100, Bytes{std::int64_t{1} << 30});
  std::erase_if(problem.schedules, [](const ScheduleSpec& spec) { return !shares_head(spec); });
  EXPECT_NEAR(work_bound(problem), 100 * (30 + 15), 1);
}

TEST(SharedHeadSearch, RowsWithSharesOfLayersWithoutWordsAreRefused) {
  std::mt19937 random(14);
  Layers layers = random_words(random, 4, 2);
  const Cluster cluster = random_cluster(random, 2, false);
  const ScheduleSpec spec{.family = "vocab_1", .ranks = 2, .microbatches = 3};
  const auto refusal = [&] {
    return message_of(
        [&] { evaluate(layers, cluster, generate(spec), placement_for(spec), Partition{{1}}); });
  };
  layers.words->ranks = 4;
  EXPECT_EQ(refusal(), "the words are divided among 4 ranks, and the rows are of 2");
  layers.words.reset();
  EXPECT_THAT(refusal(), ::testing::HasSubstr("its layers do not say which of them have words"));
}

}  // namespace
}  // namespace pfeife
