// Schedules that cut sequences, found beside the others: against brute force over all cuts, and
// what the bound says of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/judge/validate.h"
#include "planner/schedules/order_model.h"
#include "planner/search/bound/slice_bound.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/choices/leaner_orders.h"
#include "planner/search/price/price.h"
#include "planner/search/steps/offloading.h"
#include "tests/search/random_instance.h"
#include "tests/search/random_sequences.h"

namespace pfeife {
namespace {

Nanoseconds fastest_by_all_cuts(const Problem& problem, const ScheduleSpec& spec) {
  Nanoseconds best = Nanoseconds::max();
  for_each_partition(problem.layers, spec.stages(), [&](const Partition& cuts) {
    const Prices prices =
        evaluate(problem.layers, problem.cluster, generate(spec), placement_for(spec), cuts,
                 MemoryRule::Lifetimes, {}, StepNorm::None, spec.slice_lengths);
    for (std::size_t r = 0; r < spec.ranks; ++r)
      if (prices.peak_memory[r] > problem.memory_limit[r]) return;
    best = std::min(best, prices.estimate);
  });
  return best;
}

TEST(SlicedSchedules, OfTwoRanksAreTheFastestOfAllCutsAndNoneIsBelowTheBound) {
  std::mt19937 random(11);
  for (int instance = 0; instance < 12; ++instance) {
    const Layers layers = random_sequences(random, 5, instance % 2 == 0 ? 0 : 16);
    const Cluster cluster = random_cluster(random, 2, false);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    problem.device_of_rank = {DeviceId{0}, DeviceId{1}};
    problem.memory_limit.assign(2, Bytes{std::int64_t{1} << 30});
    const auto lengths = instance % 3 == 0 ? SliceLengths::Equal : SliceLengths::EqualTime;
    const std::vector<std::string> names{"1f1b", "seq1f1b", "terapipe", "slimpipe"};
    problem.schedules = search_set(2, 1 + random() % 4, std::vector<std::size_t>{1}, names,
                                   std::vector<std::size_t>{2, 3}, lengths);
    ASSERT_GE(problem.schedules.size(), 7U);  // 1f1b, and S = 2 and 3 of three families
    const Answer answer = search(problem, {.keep = 20, .iterations = 30, .certificate = true});
    ASSERT_TRUE(answer.bound.has_value());
    EXPECT_EQ(answer.certificate, nullptr);
    EXPECT_EQ(answer.bound->schedules, problem.schedules);
    Nanoseconds fastest = Nanoseconds::max();
    for (const ScheduleSpec& spec : problem.schedules) {
      const Nanoseconds best = fastest_by_all_cuts(problem, spec);
      fastest = std::min(fastest, best);
      EXPECT_LE(answer.bound->time, best) << schedule_name(spec);
      if (spec.slices == 1) continue;
      const auto found = std::ranges::find(answer.all, spec, &Priced::spec);
      ASSERT_NE(found, answer.all.end()) << schedule_name(spec);
      EXPECT_EQ(found->estimate, best) << schedule_name(spec) << " " << instance;
    }
    EXPECT_EQ(answer.plans.front().estimate, fastest);
  }
}

TEST(SlicedSchedules, OfThreeRanksFitAndAreNeverFasterThanTheFastestOfAllCuts) {
  std::mt19937 random(12);
  for (int instance = 0; instance < 4; ++instance) {
    const Layers layers = random_sequences(random, 7, 0);
    const Cluster cluster = random_cluster(random, 3, true);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    for (std::size_t r = 0; r < 3; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit.assign(3, Bytes{4000 + static_cast<std::int64_t>(random() % 4000)});
    const std::vector<std::string> names{"seq1f1b", "slimpipe"};
    problem.schedules =
        search_set(3, 4, std::vector<std::size_t>{1, 2}, names, std::vector<std::size_t>{3, 4});
    const Answer answer = search(problem, {.keep = 20, .iterations = 20});
    EXPECT_EQ(answer.plans.empty(), answer.infeasible.has_value());
    EXPECT_FALSE(answer.infeasible && answer.infeasible->proven);
    for (const Priced& plan : answer.all) {
      EXPECT_GE(plan.estimate, fastest_by_all_cuts(problem, plan.spec));
      EXPECT_LE(answer.bound->time, plan.estimate);
      for (std::size_t r = 0; r < 3; ++r) EXPECT_LE(plan.peak_memory[r], problem.memory_limit[r]);
    }
  }
}

/// Layers one after the other with nothing to send, F, I and W of that time (ns) each.
Layers alike_layers(std::mt19937& random, std::size_t count, std::int64_t time, double attention) {
  Layers layers = random_sequences(random, count, 0);
  layers.values.clear(), layers.parameters.clear(), layers.storages.clear();
  layers.sequence->attention.assign(count, attention);
  for (std::size_t l = 0; l < count; ++l) {
    if (l > 0) layers.values.push_back({.producer = LayerId{l - 1}, .consumers = {LayerId{l}}});
    for (LayerTimes& times : layers.layers[l].times)
      times = {.forward = Nanoseconds{time},
               .backward_input = Nanoseconds{time},
               .backward_weight = Nanoseconds{time}};
  }
  return layers;
}

// Two ranks, one microbatch in two slices, F = I = W = 1 ms of a slice on a rank: rank 1 works from
// 1 to 7 ms, and rank 0 until 8 ms. With whole backwards rank 1 would send its last gradient at
// 7 ms, and the step would take 9 ms.
TEST(SlicedSchedules, TheWayBackOfASplitBackwardIsThatOfItsInputs) {
  constexpr std::int64_t kSlice = 1'000'000;
  std::mt19937 random(19);
  const Layers layers = alike_layers(random, 2, 2 * kSlice, 0);
  const Cluster cluster = random_cluster(random, 2, false);
  const Problem problem{.layers = layers,
                        .cluster = cluster,
                        .schedules = {},
                        .device_of_rank = {DeviceId{0}, DeviceId{1}}};
  const ScheduleSpec spec{.family = "zb_greedy", .ranks = 2, .microbatches = 1, .slices = 2};
  const MicrobatchId first{0, 2}, second{1, 2};
  Schedule order;
  order.rows.resize(2);
  for (const std::size_t r : {0, 1}) {
    const StageId stage{r};
    order.rows[r] = {forward(stage, first),          forward(stage, second),
                     backward_input(stage, second),  backward_input(stage, first),
                     backward_weight(stage, second), backward_weight(stage, first)};
  }
  const Prices prices = evaluate(layers, cluster, order, round_robin(2, 2), Partition{{0}});
  EXPECT_NEAR(static_cast<double>(prices.estimate.count()), 8.0 * kSlice, 5000);
  EXPECT_NEAR(sliced_bound(problem, spec), 7.0 * kSlice, 5000);
}

// Seq1F1B's closed form, which equal stages and nearly free messages reach.
TEST(SlicedSchedules, OfEqualLayersReachTheirBound) {
  constexpr std::int64_t kForward = 240'000,
                         kBackward = 2 * kForward;  // ns of a layer, 16 a sequence
  std::mt19937 random(17);
  for (const std::size_t slices : {2, 3, 4, 8}) {
    const Layers layers = alike_layers(random, 8, kForward, 0.25);
    const Cluster cluster = random_cluster(random, 4, false);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    for (std::size_t r = 0; r < 4; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit.assign(4, Bytes{std::int64_t{1} << 40});
    problem.schedules = {{.family = "seq1f1b",
                          .ranks = 4,
                          .microbatches = 8,
                          .slices = slices,
                          .slice_lengths = SliceLengths::EqualTime}};
    const Answer answer = search(problem, {.keep = 1, .iterations = 20});
    const std::int64_t stage = 2 * (kForward + kBackward);
    const double step = static_cast<double>(8 * stage) +
                        static_cast<double>(3 * stage) / static_cast<double>(slices);
    EXPECT_NEAR(static_cast<double>(answer.bound->time.count()), step, 5000) << slices;
    EXPECT_NEAR(static_cast<double>(answer.plans.front().estimate.count()), step, 5000) << slices;
    EXPECT_LE(answer.bound->time, answer.plans.front().estimate);
    EXPECT_EQ(work_bound(problem), sliced_bound(problem, problem.schedules.front()));
  }
}

// Both families' rows, their backward split, are among the orders that are tried, and their cuts
// among those that get an order.
TEST(SlicedSchedules, BuiltForTheirCostsAreNoSlowerThanThoseWrittenDownAndAboveTheirBound) {
  std::mt19937 random(43);
  int faster = 0;
  for (int instance = 0; instance < 8; ++instance) {
    const std::size_t d = 2 + random() % 2;
    const Layers layers = random_sequences(random, 7, 0);
    const Cluster cluster = random_cluster(random, d, false);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
    for (std::size_t r = 0; r < d; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit.assign(d, Bytes{std::int64_t{1} << 30});
    const std::vector<std::string> names{"zb_greedy", "seq1f1b", "slimpipe"};
    problem.schedules = search_set(d, 1 + random() % 4, std::vector<std::size_t>{1}, names,
                                   std::vector<std::size_t>{2, 3});
    const Answer answer = search(problem, {.keep = 20, .iterations = 30});
    for (const Priced& plan : answer.all) {
      EXPECT_EQ(plan.order.has_value(), plan.spec.family == "zb_greedy");
      EXPECT_LE(answer.bound->time, plan.estimate);
      if (!plan.order || plan.spec.slices == 1) continue;
      for (const Priced& leaner : leaner_orders(problem, {plan}, 0.5, 1)) {
        EXPECT_EQ(slice_count(*leaner.order), plan.spec.slices);
        EXPECT_TRUE(fits(leaner.peak_memory, problem.memory_limit));
      }
      EXPECT_LE(sliced_bound(problem, plan.spec), static_cast<double>(plan.estimate.count()));
      const std::size_t slices = plan.spec.slices;
      const auto wrong =
          validate(*plan.order, {chain(d), plan.spec.microbatches * slices, false, slices});
      EXPECT_TRUE(wrong.empty()) << wrong.front().message;
      for (const Priced& other : answer.all) {
        if (other.order || other.spec.slices != slices) continue;
        EXPECT_LE(plan.estimate, other.estimate) << instance << " " << schedule_name(other.spec);
        faster += plan.estimate < other.estimate;
      }
    }
  }
  EXPECT_GT(faster, 20);
}

// Within what Seq1F1B's rows need, their backward split, on the same cuts.
TEST(SlicedSchedules, BuiltForTheirCostsFitWhereSeq1F1BDoesAndAreNoSlower) {
  std::mt19937 random(47);
  for (int instance = 0; instance < 10; ++instance) {
    const Layers layers = random_sequences(random, 6, 0);
    const Cluster cluster = random_cluster(random, 3, false);
    const ScheduleSpec seq1f1b{.family = "seq1f1b", .ranks = 3, .microbatches = 4, .slices = 2};
    const Partition cuts{{1, 3}};
    const Schedule split = schedule_of(*order_of(generate(seq1f1b)), 2);
    const Prices prices = evaluate(layers, cluster, split, round_robin(3, 3), cuts);
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {seq1f1b}};
    problem.schedules.front().family = "zb_greedy";
    for (std::size_t r = 0; r < 3; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit = prices.peak_memory;
    problem.cuts = cuts;
    const Answer answer = search(problem, {.keep = 1, .iterations = 100});
    ASSERT_FALSE(answer.plans.empty()) << instance;
    EXPECT_LE(answer.plans.front().estimate, prices.estimate) << instance;
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_LE(answer.plans.front().peak_memory[r], problem.memory_limit[r]);
  }
}

/// [stage] what it may do with what it saves.
struct Use {
  bool again = false;
  double offload = 0;
};

/// The fastest of all ways to use the stages that fits, by price() alone.
std::optional<Nanoseconds> fastest_by_all_uses(const Problem& problem, const ScheduleSpec& spec,
                                               const std::vector<Use>& uses) {
  std::optional<Nanoseconds> best;
  std::size_t combinations = 1;
  for (std::size_t s = 0; s < spec.stages(); ++s) combinations *= uses.size();
  for (std::size_t c = 0; c < combinations; ++c) {
    Choice choice{.spec = spec,
                  .partition = *problem.cuts,
                  .placement = placement_for(spec, problem.device_of_rank)};
    for (std::size_t s = 0, left = c; s < spec.stages(); ++s, left /= uses.size()) {
      choice.activations.stages.push_back(uses[left % uses.size()].again);
      choice.activations.offload.push_back(uses[left % uses.size()].offload);
    }
    const Priced plan = price(problem, choice);
    if (!fits(plan.peak_memory, problem.memory_limit)) continue;
    best = std::min(best.value_or(plan.estimate), plan.estimate);
  }
  return best;
}

/// Two to three ranks with little memory, cuts given, one family with slices.
struct TightSlices {
  explicit TightSlices(std::mt19937& random)
      : layers(random_sequences(random, 6, 0)),
        cluster(random_cluster(random, 2 + random() % 2, false)) {
    for (DeviceKind& kind : cluster.kinds) kind.host_link = HostLink{.bandwidth = {1e9}};
    const std::size_t d = cluster.devices();
    const char* const families[] = {"seq1f1b", "terapipe", "slimpipe"};
    problem.schedules = {{.family = families[random() % 3],
                          .ranks = d,
                          .microbatches = 1 + random() % 3,
                          .slices = 2 + random() % 2}};
    problem.cuts = d == 2 ? Partition{{2}} : Partition{{1, 3}};
    for (std::size_t r = 0; r < d; ++r) problem.device_of_rank.emplace_back(r);
    problem.memory_limit.assign(d, Bytes{1 << 30});
    const Priced roomy =
        price(problem, {.spec = problem.schedules[0],
                        .partition = *problem.cuts,
                        .placement = placement_for(problem.schedules[0], problem.device_of_rank)});
    const double share = 0.6 + static_cast<double>(random() % 45) / 100;
    for (std::size_t r = 0; r < d; ++r)
      problem.memory_limit[r] =
          Bytes{static_cast<std::int64_t>(share * static_cast<double>(roomy.peak_memory[r].value))};
  }
  TightSlices(const TightSlices&) = delete;
  TightSlices& operator=(const TightSlices&) = delete;

  Layers layers;
  Cluster cluster;
  Problem problem{.layers = layers, .cluster = cluster, .schedules = {}};
};

TEST(SlicedSchedules, RecomputeAsFewStagesAsMemoryAllows) {
  std::mt19937 random(13);
  std::size_t recomputed = 0, infeasible = 0, less = 0;
  for (int instance = 0; instance < 60; ++instance) {
    TightSlices tight(random);
    Problem& problem = tight.problem;
    problem.recompute = Recompute::Choose;
    const auto best = fastest_by_all_uses(problem, problem.schedules[0], {{false, 0}, {true, 0}});
    const Answer answer = search(problem, {});
    ASSERT_EQ(answer.plans.empty(), !best) << instance;
    infeasible += !best;
    if (!best) {
      Problem keeping = problem;
      keeping.recompute = Recompute::None;
      less += answer.infeasible->lacking() < search(keeping, {}).infeasible->lacking();
      for (Bytes& limit : problem.memory_limit) limit += answer.infeasible->lacking();
      EXPECT_FALSE(search(problem, {}).plans.empty()) << instance;
    }
    if (!best) continue;
    EXPECT_EQ(answer.plans.front().estimate, *best) << instance;
    EXPECT_LE(answer.bound->time, *best);
    recomputed += answer.plans.front().activations.recomputes();
    problem.recompute = Recompute::IfNeeded;
    EXPECT_EQ(search(problem, {}).plans.front().estimate, *best) << instance;
  }
  EXPECT_GT(recomputed, 10u);
  EXPECT_GT(infeasible, 5u);
  EXPECT_GT(less, infeasible / 2);  // what is missing is said of stages that recompute
}

TEST(SlicedSchedules, OffloadAndRecomputeAsIsFastestTogether) {
  std::mt19937 random(29);
  std::size_t offloading = 0;
  for (int instance = 0; instance < 40; ++instance) {
    TightSlices tight(random);
    Problem& problem = tight.problem;
    problem.recompute = Recompute::Choose;
    std::vector<Use> uses;
    for (const bool again : {false, true})
      for (const double share : {0.0, 0.5, 1.0}) uses.push_back({again, share});
    const auto best = fastest_by_all_uses(problem, problem.schedules[0], uses);
    Pool pool(search(problem, {}), problem.memory_limit);
    add_offloading_plans(problem, {}, search, pool);
    ASSERT_EQ(pool.answer().plans.empty(), !best) << instance;
    if (!best) continue;
    EXPECT_EQ(pool.answer().plans.front().estimate, *best) << instance;
    EXPECT_LE(pool.answer().bound->time, *best);
    offloading += pool.answer().plans.front().activations.offloads();
  }
  EXPECT_GT(offloading, 5u);
}

// One layer saves 100 B, 30 of them keys and values, and reads an input of 10 B that it saves.
// Computed again, a slice of half the sequence keeps half the input and half the keys and values,
// 5 + 15 B, and its backward makes the other 30 B again; its input may go to the host. No slice
// reads the last one's keys and values.
TEST(SlicedStageCosts, KeysAndValuesStayOnTheDevice) {
  const Nanoseconds one{1000};
  Layers layers;
  for (int l = 0; l < 2; ++l) {
    Layer layer;
    layer.times = {{one, one, one, Nanoseconds{0}}};
    layer.saved = Bytes{90};
    layers.layers.push_back(layer);
  }
  layers.values.push_back({"v", LayerId{0}, {LayerId{1}}, Bytes{10}, Bytes{10}, {}});
  layers.storages.push_back({.bytes = Bytes{10}, .savers = {LayerId{1}}, .value = 0});
  layers.sequence = Sequence{.attention = {0, 0}, .keys_values = {Bytes{30}, Bytes{30}}};
  DeviceKind kind;
  kind.host_link = HostLink{.bandwidth = {1e9}};  // 1 B a ns
  const Cluster cluster = uniform_cluster(2, kind, {1e12}, Nanoseconds{0});
  const Placement placement = round_robin(2, 2);
  const auto slice = [&](const Activations& activations, std::size_t number = 0) {
    const Partition cuts{{0}};
    return sliced_stage_costs(stage_costs(layers, cuts, placement, cluster, activations), 2,
                              SliceLengths::Equal, layers, cuts, placement, cluster, activations)
        .slices[number]
        .stages[1];
  };
  EXPECT_EQ(slice({}).saved, Bytes{50});
  const StageCost again = slice({.stages = {true, true}, .offload = {0, 1}});
  EXPECT_EQ(again.saved, Bytes{5 + 15});
  EXPECT_EQ(again.recomputed, Bytes{45 - 15});
  EXPECT_EQ(again.backward_input, one);  // half of F and I
  EXPECT_EQ(again.offloaded, Bytes{5});
  EXPECT_EQ(again.offload, Nanoseconds{5});
  EXPECT_EQ(slice({.offload = {0, 1}}).offloaded, Bytes{50 - 15});
  EXPECT_EQ(slice({.blocks = {{LayerId{1}, LayerId{1}}}}).saved, Bytes{5 + 15});
  const StageCost last = slice({.stages = {true, true}, .offload = {0, 1}}, 1);
  EXPECT_EQ(last.saved, Bytes{5});
  EXPECT_EQ(last.recomputed, Bytes{45});
  EXPECT_EQ(last.offloaded, Bytes{5});
  EXPECT_EQ(slice({.offload = {0, 1}}, 1).offloaded, Bytes{50});
}

TEST(SlicedStageCosts, ASequenceOfFewTokensHasNotMoreSlices) {
  Layers layers;
  EXPECT_THAT(not_sliced_because(layers, 2),
              ::testing::HasSubstr("attention of this model is not seen"));
  layers.sequence = Sequence{.tokens = 3};
  EXPECT_EQ(not_sliced_because(layers, 3), "");
  EXPECT_EQ(not_sliced_because(layers, 4), "a sequence of 3 tokens has no 4 slices");
}

}  // namespace
}  // namespace pfeife
