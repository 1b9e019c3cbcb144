// What recomputing a stage costs, by hand.
#include <gtest/gtest.h>

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

/// Four layers, F I W of 2, 3, 4 ns; each saves 50 B of its own; a chain of 10 B values, of which
/// layer 2 and its producer layer 1 keep theirs; layer 0 reads 7 B of the model's input.
Layers chain() {
  Layers layers;
  for (int l = 0; l < 4; ++l) {
    Layer layer;
    layer.times = {{ns{2}, ns{3}, ns{4}, ns{0}}};
    layer.saved = Bytes{50}, layer.weight_saved = Bytes{20},
    layer.temporary = PassBytes::same(Bytes{5});
    if (l == 0) layer.model_input = Bytes{7};
    layers.layers.push_back(layer);
    if (l < 3)
      layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, Bytes{10}, Bytes{10}, {}});
  }
  layers.storages.push_back({Bytes{10}, {LayerId{1}, LayerId{2}}, {}, 1});
  return layers;
}

TEST(RecomputedStage, RunsItsForwardAgainAndKeepsItsInputs) {
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, ns{0});
  const Placement placement = round_robin(2, 2);
  const StageCosts kept = stage_costs(chain(), {{1}}, placement, cluster);
  const StageCosts both = stage_costs(chain(), {{1}}, placement, cluster, {.stages = {true, true}});
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(kept.stages[s].saved, Bytes{110});
    EXPECT_EQ(kept.stages[s].backward_input, ns{6});
    EXPECT_EQ(both.stages[s].backward_input, ns{6 + 4});
    EXPECT_EQ(both.stages[s].forward, ns{4});
    EXPECT_EQ(both.stages[s].backward_weight, ns{8});
    EXPECT_EQ(both.stages[s].weight_saved, Bytes{40});
    EXPECT_EQ(both.stages[s].temporary.backward, kept.stages[s].temporary.backward);
    // F holds what one layer makes at a time: its 50 B and 5 B of temporaries. The F that B begins
    // with has the 5 B on top of all that it makes.
    EXPECT_EQ(both.stages[s].temporary.forward, Bytes{50 + 5});
    EXPECT_EQ(both.stages[s].forward_again, Bytes{5});
    EXPECT_EQ(kept.stages[s].temporary.forward, Bytes{5});
  }
  EXPECT_EQ(both.stages[0].saved, Bytes{7});         // the model's input
  EXPECT_EQ(both.stages[0].recomputed, Bytes{110});  // its output is sent, so made again as well
  EXPECT_EQ(both.stages[1].saved, Bytes{10});        // what it receives, which is kept already
  EXPECT_EQ(both.stages[1].recomputed, Bytes{100});
  EXPECT_TRUE(kept.values[0].saved_by_sender);
  EXPECT_FALSE(both.values[0].saved_by_sender);
  EXPECT_TRUE(both.values[0].saved_by_receiver[0]);
}

// Stage 1 reads 10 B of its neighbour, which layer 1 keeps alone, and 6 B of layer 0, which the
// reader keeps as well: both are kept as inputs, and only the second was among what it saves.
TEST(RecomputedStage, KeepsEveryValueThatItReceives) {
  Layers layers = chain();
  layers.values.push_back({"skip", LayerId{0}, {LayerId{2}}, Bytes{6}, Bytes{6}, {}});
  layers.storages = {{Bytes{10}, {LayerId{1}}, {}, 1}, {Bytes{6}, {LayerId{2}}, {}, 3}};
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, ns{0});
  const Placement placement = round_robin(2, 2);
  const StageCosts kept = stage_costs(layers, {{1}}, placement, cluster);
  const StageCosts both = stage_costs(layers, {{1}}, placement, cluster, {.stages = {true, true}});
  EXPECT_EQ(kept.stages[1].saved, Bytes{2 * 50 + 6});
  EXPECT_EQ(both.stages[1].saved, Bytes{10 + 6});
  EXPECT_EQ(both.stages[1].recomputed, Bytes{2 * 50});
}

// 1F1B of two stages, four microbatches: F takes 4 ns, B 6 + 8, of a recomputed stage 18. Rank 1
// runs F and B of one microbatch after the other; what rank 0 adds is F before and B behind:
// 4 + 4 (4 + 18) + 18 = 110. Of microbatch 3, which both run forward last, nothing is recomputed:
// 4 + 3 (4 + 18) + (4 + 14) + 14.
TEST(RecomputedStage, ExceptTheLastMicrobatchRunsThatBackwardAlone) {
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e18}, ns{0});
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 4};
  const Placement placement = placement_for(spec);
  const auto planned = [&](bool except_last) {
    return evaluate(chain(), cluster, generate(spec), placement, {{1}}, MemoryRule::Lifetimes,
                    {.stages = {true, true}, .except_last = except_last});
  };
  EXPECT_EQ(planned(false).estimate, ns{110});
  EXPECT_EQ(planned(true).estimate, ns{102});
  // Rank 0 runs B of microbatch 2, made again, while microbatch 3 keeps all that F made of it, its
  // output included: 110 each, 7 that microbatch 2 kept, 5 of temporaries, its gradient of 10.
  EXPECT_EQ(planned(true).peak_memory.front(), Bytes{110 + 110 + 7 + 5 + 10});
  // Blocks: each layer by itself. Of the last microbatch none is made again.
  const auto by_blocks = [&](bool except_last) {
    return evaluate(chain(), cluster, generate(spec), placement, {{1}}, MemoryRule::Lifetimes,
                    {.blocks = {{LayerId{0}, LayerId{0}}, {LayerId{2}, LayerId{2}}},
                     .except_last = except_last});
  };
  EXPECT_EQ(by_blocks(false).estimate, ns{4 + 4 * (4 + 16) + 16});
  EXPECT_EQ(by_blocks(true).estimate, ns{4 + 3 * (4 + 16) + (4 + 14) + 14});
}

// Where a stage runs its microbatches forward in another order, its own last one is meant.
TEST(RecomputedStage, ExceptLastGoesByTheOrderOfTheForwards) {
  const Schedule schedule{
      .rows = {{forward(StageId{0}, MicrobatchId{1}), forward(StageId{0}, MicrobatchId{0}),
                backward(StageId{0}, MicrobatchId{1}), backward(StageId{0}, MicrobatchId{0})}}};
  EXPECT_EQ(last_forwards(schedule, 2), (std::vector{MicrobatchId{0}, MicrobatchId{-1}}));
  const Cluster cluster = uniform_cluster(1, DeviceKind{}, {1e9}, ns{0});
  const Placement placement = round_robin(1, 1);
  const StageCosts costs =
      stage_costs(chain(), {}, placement, cluster, {.stages = {true}, .except_last = true});
  const Schedule lowered = lower(schedule, costs, placement);
  const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement, {});
  const Trace trace = std::get<Trace>(estimate(graph, costs));
  const auto time = [&](std::size_t t) { return trace.events[t].end - trace.events[t].start; };
  EXPECT_EQ(time(2), ns{4 * (2 + 3 + 4)});
  EXPECT_EQ(time(3), ns{4 * (3 + 4)});
}

TEST(RecomputedStage, OfOneForwardOneBackwardHoldsInputsInFlightAndOneStageInFull) {
  // Rank 0 of 1F1B with 4 microbatches has two in flight: kept 2 x 110 and temporaries; recomputed
  // 2 x 7, and 110 of the one that runs.
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, ns{0});
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 4};
  const Placement placement = placement_for(spec);
  const auto peaks = [&](const std::vector<bool>& recompute) {
    const StageCosts costs = stage_costs(chain(), {{1}}, placement, cluster, {recompute});
    return peak_memory(lower(generate(spec), costs, placement), costs, placement);
  };
  // In B, the gradient of 10 B that was received besides.
  EXPECT_EQ(peaks({}).front(), Bytes{2 * 110 + 5 + 10});
  EXPECT_EQ(peaks({true, false}).front(), Bytes{2 * 7 + 110 + 5 + 10});
  // Rank 1 has one in flight: its own 100 B and the 10 B received, a gradient of 10 B to send back,
  // and the next microbatch's 10 B already received; recomputing changes nothing.
  EXPECT_EQ(peaks({}).back(), peaks({false, true}).back());
}

}  // namespace
}  // namespace pfeife
