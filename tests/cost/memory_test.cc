#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/reference_memory.h"
#include "tests/ir/rows.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using testing::rows;
using ns = Nanoseconds;

std::vector<std::int64_t> after(const MemoryCurve& curve) {
  std::vector<std::int64_t> bytes;
  for (const MemoryStep& step : curve.steps) bytes.push_back(step.after.value);
  return bytes;
}
std::vector<std::int64_t> during(const MemoryCurve& curve) {
  std::vector<std::int64_t> bytes;
  for (const MemoryStep& step : curve.steps) bytes.push_back(step.during.value);
  return bytes;
}

/// Two stages; message 5 B each way, saved 100 B, fixed 1000 B, temporary 7 B; one microbatch.
struct TwoStages {
  StageCosts costs = uniform_costs(2, ns{1}, ns{1}, ns{1}, ns{1});
  Schedule schedule = rows({"0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"});
  TwoStages() {
    for (StageCost& stage : costs.stages) {
      stage.parameters = Bytes{1000};
      stage.saved = Bytes{100};
      stage.temporary = PassBytes::same(Bytes{7});
    }
    costs.values[0].bytes = costs.values[0].gradient_bytes = Bytes{5};
    costs.pairs[0].bytes = costs.pairs[0].gradient_bytes = Bytes{5};
  }
  MemoryCurve on(int rank) {
    return memory(schedule, RankId{rank}, costs, *placement_of(schedule));
  }
};

TEST(Memory, FollowsEveryLifetimeOfTwoStages) {
  TwoStages two;
  // Rank 0: F leaves saved 100 and the unsent 5; SEND frees 5; RECV_B holds 5; B frees both.
  EXPECT_THAT(after(two.on(0)), ElementsAre(1105, 1100, 1105, 1000));
  EXPECT_THAT(during(two.on(0)), ElementsAre(1112, 1105, 1105, 1112));
  // Rank 1: receive buffer 5 until F is done; B makes the gradient 5, held until sent. While B runs
  // it is among the temporaries.
  EXPECT_THAT(after(two.on(1)), ElementsAre(1005, 1100, 1005, 1000));
  EXPECT_THAT(during(two.on(1)), ElementsAre(1005, 1112, 1107, 1005));
  EXPECT_EQ(two.on(0).peak(), Bytes{1112});
}

TEST(Memory, AValueKeptBySenderAndReceiverCountsOnceOnEach) {
  TwoStages two;
  two.costs.values[0].saved_by_sender = true;
  two.costs.values[0].saved_by_receiver = {true};
  // `saved` of 100 already contains the 5 on both sides: no extra bytes before SEND, none besides
  // the buffer in F.
  EXPECT_THAT(after(two.on(0)), ElementsAre(1100, 1100, 1105, 1000));
  EXPECT_THAT(after(two.on(1)), ElementsAre(1005, 1100, 1005, 1000));
  EXPECT_THAT(during(two.on(1)), ElementsAre(1005, 1107, 1107, 1005));
}

TEST(Memory, HandOverOnTheSameRankHoldsTheValueUntilItIsRead) {
  TwoStages two;
  two.schedule = rows({"0F0 0F1 1F0 1B0 0B0 1F1 1B1 0B1"});
  // Both stages' parameters; each F of stage 0 leaves 100 + 5; 1F0 keeps 100 and lets go of the 5;
  // 1B0 makes a gradient of 5 that 0B0 consumes.
  EXPECT_THAT(after(two.on(0)), ElementsAre(2105, 2210, 2305, 2210, 2105, 2200, 2105, 2000));
}

TEST(Memory, SplitBackwardKeepsWhatTheWeightGradientNeedsUntilW) {
  TwoStages two;
  for (StageCost& stage : two.costs.stages) stage.weight_saved = Bytes{40};
  two.schedule = rows({"0F0 0SEND_F0 0RECV_B0 0I0 0W0", "1RECV_F0 1F0 1I0 1SEND_B0 1W0"});
  EXPECT_THAT(after(two.on(0)), ElementsAre(1105, 1100, 1105, 1040, 1000));
  EXPECT_THAT(after(two.on(1)), ElementsAre(1005, 1100, 1045, 1040, 1000));
}

TEST(Memory, AValueForTwoStagesIsHeldUntilTheLastSend) {
  TwoStages two;
  two.costs = uniform_costs(3, ns{1}, ns{1}, ns{1}, ns{1});
  two.costs.values = {
      {StageId{0}, {StageId{1}, StageId{2}}, Bytes{5}, Bytes{0}, false, {false, false}}};
  for (StageCost& stage : two.costs.stages) stage.saved = Bytes{0};
  two.schedule = rows({"0F0 0SEND_F0 0SKIP_SEND_F0>2", "1RECV_F0 1F0", "2SKIP_RECV_F0<0 2F0"});
  EXPECT_THAT(after(two.on(0)), ElementsAre(5, 5, 0));
  EXPECT_THAT(after(two.on(2)), ElementsAre(5, 0));
}

// Stage 2 reads 5 B of stage 0 and 3 B of stage 1, and sends 50 B and 30 B of gradients back: each
// message is booked when it comes or goes, not with the other.
TEST(Memory, MessagesOfTwoStagesAreHeldEachFromItsRecvToItsSend) {
  TwoStages two;
  two.costs = uniform_costs(3, ns{1}, ns{1}, ns{1}, ns{1});
  two.costs.values = {{StageId{0}, {StageId{2}}, Bytes{5}, Bytes{50}, false, {false}},
                      {StageId{1}, {StageId{2}}, Bytes{3}, Bytes{30}, false, {false}}};
  for (StageCost& stage : two.costs.stages) stage.saved = Bytes{0};
  two.schedule = rows({"0F0 0SKIP_SEND_F0>2 0SKIP_RECV_B0<2 0B0", "1F0 1SEND_F0 1RECV_B0 1B0",
                       "2SKIP_RECV_F0<0 2RECV_F0 2F0 2B0 2SEND_B0 2SKIP_SEND_B0>0"});
  EXPECT_THAT(after(two.on(0)), ElementsAre(5, 0, 50, 0));
  EXPECT_THAT(after(two.on(1)), ElementsAre(3, 0, 30, 0));
  EXPECT_THAT(after(two.on(2)), ElementsAre(5, 8, 0, 80, 50, 0));
}

TEST(Memory, EachPassHasTemporariesOfItsOwn) {
  TwoStages two;
  for (StageCost& stage : two.costs.stages) {
    stage.weight_saved = Bytes{40};
    stage.temporary = {Bytes{1}, Bytes{2}, Bytes{3}, Bytes{4}};
  }
  two.schedule = rows({"0F0 0SEND_F0 0RECV_B0 0I0 0W0", "1RECV_F0 1F0 1B0 1SEND_B0"});
  EXPECT_THAT(during(two.on(0)), ElementsAre(1106, 1105, 1105, 1108, 1044));
  EXPECT_THAT(during(two.on(1)), ElementsAre(1005, 1106, 1102, 1005));
}

// A row that has I of a stage runs its B as I and then W: on rank 1, of 1100 B when B begins, 5 are
// the gradient that is left when W follows with what I kept for it.
TEST(Memory, BackwardOfAStageThatIsSplitElsewhereTakesWhatIAndWTake) {
  TwoStages two;
  two.schedule = rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1I1 1SEND_B1 1W1"});
  const auto during_b = [&](std::int64_t input, std::int64_t weight_saved) {
    two.costs.stages[1].temporary = {Bytes{1}, Bytes{2}, Bytes{input}, Bytes{4}};
    two.costs.stages[1].weight_saved = Bytes{weight_saved};
    return during(two.on(1))[2];
  };
  EXPECT_EQ(during_b(3, 0), 1100 + 3);
  EXPECT_EQ(during_b(3, 140), 1005 + 140 + 4);
}

// W runs after I has let go of what only I needed: neither holds the other's temporaries.
TEST(Memory, IAndWOfAStageTakeOnlyTheirOwnTemporaries) {
  TwoStages two;
  two.costs.stages[0].weight_saved = Bytes{40};
  two.costs.stages[0].temporary = {Bytes{1}, Bytes{2}, Bytes{3}, Bytes{900}};
  two.schedule = rows({"0F0 0SEND_F0 0RECV_B0 0I0 0W0", "1RECV_F0 1F0 1B0 1SEND_B0"});
  EXPECT_THAT(during(two.on(0)), ElementsAre(1106, 1105, 1105, 1108, 1040 + 900));
}

// B makes all of it, in a forward with temporaries of its own; F only passes it by.
TEST(Memory, ARecomputedStageHoldsWhatItMakesAgainWhileItRuns) {
  TwoStages two;
  two.costs.stages[0].recomputed = Bytes{60};
  two.costs.stages[0].temporary = {Bytes{8}, Bytes{2}, Bytes{3}, Bytes{4}};
  two.costs.stages[0].forward_again = Bytes{6};
  EXPECT_THAT(after(two.on(0)), ElementsAre(1105, 1100, 1105, 1000));
  EXPECT_THAT(during(two.on(0)), ElementsAre(1105 + 8, 1105, 1105, 1105 + 6 + 60));
}

// Two microbatches of which rank 0 keeps the second in full, with the 5 B that it sends, and 7 B of
// the first, which it makes again: 60 B. Rank 1 keeps what it receives of the second alone.
TEST(Memory, TheMicrobatchThatAStageRunsForwardLastMayBeKept) {
  TwoStages two;
  two.costs.last = {two.costs.stages, two.costs.values};
  for (StageCost& stage : two.costs.stages) stage.temporary = {};
  for (StageCost& stage : two.costs.last.stages) stage.temporary = {};
  two.costs.stages[0].saved = Bytes{7}, two.costs.stages[0].recomputed = Bytes{60};
  two.costs.last.stages[0].saved = Bytes{100};
  two.costs.last.values[0].saved_by_sender = true;
  two.schedule = rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"});
  EXPECT_THAT(after(two.on(0)), ElementsAre(1012, 1007, 1107, 1107, 1112, 1100, 1105, 1000));
  EXPECT_THAT(during(two.on(0)), ElementsAre(1012, 1012, 1107, 1107, 1112, 1112 + 60, 1105, 1105));
  two.costs.last.values[0].saved_by_sender =
      false;  // then the output comes on top until it is sent
  EXPECT_EQ(two.on(0).steps.at(2).after, Bytes{1000 + 7 + 100 + 5});
  EXPECT_EQ(two.on(0).steps.at(3).after, Bytes{1000 + 7 + 100});
}

TEST(Memory, IsNeverLessDuringAnActionThanAfterIt) {
  TwoStages two;
  for (StageCost& stage : two.costs.stages) stage.saved = Bytes{0}, stage.temporary = {};
  EXPECT_THAT(after(two.on(1)), ElementsAre(1005, 1000, 1005, 1000));
  EXPECT_THAT(during(two.on(1)), ElementsAre(1005, 1005, 1005, 1005));
}

// F of 1 ns, B of 2, transfers of 1: rank 0 computes from 0 to 1 and, when its gradient has come
// back, from 6 to 8. Transfers are booked when the action before them ends.
TEST(Memory, ATraceHasEveryLevelAtItsTime) {
  TwoStages two;
  const Placement placement = *placement_of(two.schedule);
  const DependencyGraph graph =
      dependencies(two.schedule, stage_graph(two.costs), placement, Semantics{});
  auto trace = std::get<Trace>(estimate(graph, two.costs));
  add_memory(trace, graph, two.schedule, two.costs, placement);
  std::vector<std::pair<std::int64_t, std::int64_t>> samples;
  for (const MemorySample& sample : trace.memory[0])
    samples.emplace_back(sample.time.count(), sample.bytes.value);
  EXPECT_THAT(samples, ElementsAre(std::pair{0, 1000}, std::pair{0, 1112}, std::pair{1, 1105},
                                   std::pair{1, 1100}, std::pair{1, 1105}, std::pair{6, 1112},
                                   std::pair{8, 1000}));
}

// Rank 1 computes F from 2 to 3, B to 5 and steps to 9: what it sends only then is held until 9.
TEST(Memory, ATraceHoldsWhatIsSentAfterTheStepUntilTheStepEnds) {
  TwoStages two;
  two.costs.stages[1].optimizer = ns{4};
  two.schedule = rows({"0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1OPTIMIZER_STEP 1SEND_B0"});
  const Placement placement = *placement_of(two.schedule);
  const DependencyGraph graph =
      dependencies(two.schedule, stage_graph(two.costs), placement, Semantics{});
  auto trace = std::get<Trace>(estimate(graph, two.costs));
  add_memory(trace, graph, two.schedule, two.costs, placement);
  EXPECT_EQ(trace.memory[1].back().time, ns{9});
  EXPECT_EQ(trace.memory[1].back().bytes, Bytes{1000});
  EXPECT_EQ(trace.memory[1].at(trace.memory[1].size() - 2).bytes, Bytes{1005});
}

TEST(Memory, ReturnsToTheStaticLevelWhenAllIsDone) {
  TwoStages two;
  for (const int rank : {0, 1}) EXPECT_EQ(two.on(rank).steps.back().after, two.on(rank).fixed);
}

/// The log in the read-me of the published program: 2 ranks, 3 microbatches, 1F1B; MiB to the
/// printed 0.01.
TEST(ReferenceMemory, GivesThePublishedPeaksOfTheLog) {
  const auto mib = [](double value) { return Bytes{std::llround(value * 1024 * 1024)}; };
  StageCosts costs = uniform_costs(2, ns{1}, ns{1}, ns{1}, ns{1});
  const double weight[] = {7723.98, 7727.24}, act[] = {1860.00, 1854.48},
               temp[] = {1873.04, 1867.51};
  std::vector<Bytes> temporary;
  for (std::size_t s = 0; s < 2; ++s) {
    costs.stages[s].parameters = mib(weight[s] / 4);
    costs.stages[s].saved = mib(act[s]);
    temporary.push_back(mib(temp[s] - act[s]));  // the log's temp contains act
  }
  costs.stages[0].model_input = Bytes{4 * 3 * 224 * 224 * 4};
  costs.pairs[0].bytes =
      Bytes{2 * 4 * 257 * 1408 * 4};  // the published program counts the edge twice
  const Schedule schedule =
      rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 0RECV_B1 0B1 0RECV_B2 0B2",
            "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1RECV_F2 1F2 1B2 1SEND_B2"});
  const double idle[] = {7797.13, 7826.63}, peak[] = {11530.17, 9694.14};
  for (int r = 0; r < 2; ++r) {
    const MemoryCurve curve =
        reference_memory(schedule, RankId{r}, costs, *placement_of(schedule), temporary);
    const auto in_mib = [](Bytes b) { return static_cast<double>(b.value) / (1024.0 * 1024.0); };
    EXPECT_NEAR(in_mib(curve.fixed), idle[r], 0.0051) << r;
    EXPECT_NEAR(in_mib(curve.peak()), peak[r], 0.0051) << r;
  }
}

// Four times the parameters, twice what is sent; F and B of a microbatch run with its 100 B, the
// largest layer's 7 and what is made again.
TEST(ReferenceMemory, FAndBBothHoldTheLargestLayerAndWhatTheyMakeAgain) {
  TwoStages two;
  two.costs.stages[0].recomputed = Bytes{60};
  const MemoryCurve curve = reference_memory(two.schedule, RankId{0}, two.costs,
                                             *placement_of(two.schedule), {Bytes{7}, Bytes{7}});
  EXPECT_EQ(curve.fixed, Bytes{4 * 1000 + 2 * 5});
  EXPECT_THAT(during(curve), ElementsAre(4010 + 167, 4110, 4110, 4010 + 167));
  EXPECT_THAT(after(curve), ElementsAre(4110, 4110, 4110, 4010));
}

// Layers 0 to 2 need 3, 9 and 4 B in the action that needs most.
TEST(ReferenceMemory, TakesTheLargestTemporaryOfAStagesLayersInAnyAction) {
  Layers layers;
  layers.layers.resize(3);
  layers.layers[0].temporary.forward = Bytes{3};
  layers.layers[1].temporary.weight = Bytes{9};
  layers.layers[2].temporary.input = Bytes{4};
  EXPECT_THAT(largest_temporaries(layers, {{0}}), ElementsAre(Bytes{3}, Bytes{9}));
  EXPECT_THAT(largest_temporaries(layers, {{1}}), ElementsAre(Bytes{9}, Bytes{4}));
}

}  // namespace
}  // namespace pfeife
