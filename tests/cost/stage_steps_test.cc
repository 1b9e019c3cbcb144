// Stages as programs of two streams: pairs by hand, and the sums that they keep.
#include "planner/cost/stages/stage_steps.h"

#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/action_time.h"

namespace pfeife {
namespace {

using Ns = Nanoseconds;

/// A layer with experts. Forward: 4 of attention, 6 dispatch, 5 of experts, 3 combine. Backward: 3
/// combine, 10 (weights 7), 6 dispatch, 8 (weights 2).
const std::vector<PassStep> kExperts = {{WorkKind::Compute, Ns{4}, Ns{8}, Ns{2}},
                                        {WorkKind::Dispatch, Ns{6}, Ns{6}},
                                        {WorkKind::Compute, Ns{5}, Ns{10}, Ns{7}},
                                        {WorkKind::Combine, Ns{3}, Ns{3}}};

/// A layer on one rank, whose passes have `overhead` besides.
struct OneLayer {
  Layers layers;
  Cluster cluster = uniform_cluster(1, {.memory = kGiB}, {1e12}, Ns{0});
  Placement placement = round_robin(1, 1);

  explicit OneLayer(Ns overhead) {
    layers.layers.push_back({.name = "experts", .times = {{Ns{18}, Ns{27}, Ns{9}}}});
    layers.collectives.push_back({Ns{9}, Ns{9}});
    layers.steps.push_back(kExperts);
    cluster.kinds.front().stage_overhead = overhead;
  }
  StageCosts costs(const Activations& activations = {}) const {
    return stage_costs(layers, Partition{}, placement, cluster, activations);
  }
};

// By hand, | a moment, F above B:
//   compute  0-4 F | 4-14 B | 14-19 F | 19-26 W | 26-34 B | 34-36 W
//   sends    0-3 combine B | 4-10 dispatch F | 14-20 dispatch B | 20-23 combine F
// B's step of 10 begins at 4: compute is free, and F's experts wait for their tokens until 10. At
// 14 F's way to the end is 8, that of W 7; at 20 B's attention is ready, and W runs.
TEST(StageSteps, OfAPairRunAsByHand) {
  const StageCosts costs = OneLayer(Ns{0}).costs();
  ASSERT_EQ(costs.side_by_side.size(), 1u);
  EXPECT_EQ(costs.side_by_side[0].with_backward, Ns{36});
  const std::vector<StageSteps> stages = stage_steps(
      OneLayer(Ns{0}).layers, {}, OneLayer(Ns{0}).placement, OneLayer(Ns{0}).cluster, costs.stages);
  const StreamTimes times =
      run_streams(side_by_side_program(stages[0], stages[0], BackwardPart::Whole, 1));
  EXPECT_EQ(times.busy, (std::vector{Ns{36}, Ns{18}}));
  EXPECT_EQ(times.both, Ns{18});
  // Without weight gradients compute waits for B's tokens from 19 to 20.
  EXPECT_EQ(costs.side_by_side[0].with_input, Ns{28});
  const std::vector<Action> pair = {forward(StageId{0}, MicrobatchId{1}),
                                    backward(StageId{0}, MicrobatchId{0})};
  EXPECT_EQ(side_by_side_time(pair, costs, [](const Action&) { return false; }), Ns{36});
}

// An overhead is computed before the first step of both; what is recomputed, before backward's.
TEST(StageSteps, BeginWithOverheadsAndWhatIsRecomputed) {
  EXPECT_EQ(OneLayer(Ns{5}).costs().side_by_side[0].with_backward, Ns{47});
  const StageCosts again = OneLayer(Ns{0}).costs({.stages = {true}});
  EXPECT_EQ(again.side_by_side[0].with_backward, Ns{36 + 18});
  const StageCosts last = OneLayer(Ns{0}).costs({.stages = {true}, .except_last = true});
  EXPECT_EQ(last.side_by_side[0].with_backward, Ns{36 + 18});
  ASSERT_EQ(last.last.side_by_side.size(), 1u);
  EXPECT_EQ(last.last.side_by_side[0].with_backward, Ns{36});
}

// A layer's times count: steps are as long as these together, and what steps lack is a step.
TEST(StageSteps, AreAsLongAsTheirLayersTimes) {
  OneLayer one(Ns{0});
  one.layers.layers[0].times[0] = {Ns{18 + 9 + 4}, Ns{45}, Ns{18}};
  one.layers.collectives[0] = {Ns{9 + 4}, Ns{9}};
  const std::vector<StageSteps> stages =
      stage_steps(one.layers, {}, one.placement, one.cluster, one.costs().stages);
  EXPECT_EQ(stages[0].before_forward, Ns{0});
  EXPECT_EQ(stages[0].steps, (std::vector<PassStep>{{WorkKind::Weights, Ns{4}, Ns{0}},
                                                    {WorkKind::Compute, Ns{8}, Ns{16}, Ns{4}},
                                                    {WorkKind::Dispatch, Ns{6}, Ns{6}},
                                                    {WorkKind::Compute, Ns{10}, Ns{20}, Ns{14}},
                                                    {WorkKind::Combine, Ns{3}, Ns{3}}}));
}

TEST(StageSteps, WithoutThemPairsTakeTheLongerOfTheirSums) {
  OneLayer one(Ns{0});
  one.layers.steps.clear();
  EXPECT_TRUE(one.costs().side_by_side.empty());
}

}  // namespace
}  // namespace pfeife
