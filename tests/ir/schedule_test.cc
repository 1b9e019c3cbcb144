#include "planner/ir/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <tuple>

#include "planner/ir/schedule/action_inputs.h"
#include "planner/ir/schedule/operation.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

Schedule two_ranks() {
  const StageId s0{0}, s1{1};
  const MicrobatchId m0{0}, m2{2};
  return {
      {{forward(s0, m0), Cell{}, Overlap{{forward(s0, m2), backward(s0, m0)}}}, {forward(s1, m0)}}};
}

TEST(Placement, RoundRobinAndVShapeOfTwoRanksAndFourStages) {
  const Placement dealt = round_robin(4, 2), folded = v_shape(2);
  EXPECT_EQ(dealt.rank_of_stage, (std::vector{RankId{0}, RankId{1}, RankId{0}, RankId{1}}));
  EXPECT_EQ(folded.rank_of_stage, (std::vector{RankId{0}, RankId{1}, RankId{1}, RankId{0}}));
  EXPECT_EQ(folded.device(StageId{2}), DeviceId{1});
}

TEST(Placement, IsReadOffTheRows) {
  Schedule schedule = two_ranks();
  EXPECT_EQ(placement_of(schedule), round_robin(2, 2));
  schedule.rows[1].push_back(backward(StageId{0}, MicrobatchId{2}));  // stage 0 on two ranks
  EXPECT_EQ(placement_of(schedule), std::nullopt);
  schedule = two_ranks();
  schedule.rows[1].push_back(forward(StageId{3}, MicrobatchId{0}));  // stage 2 nowhere
  EXPECT_EQ(placement_of(schedule), std::nullopt);
  EXPECT_EQ(placement_of(Schedule{}), Placement{});
}

TEST(Schedule, CountsReachIntoOverlaps) {
  EXPECT_EQ(stage_count(two_ranks()), 2u);
  EXPECT_EQ(microbatch_count(two_ranks()), 3u);
  EXPECT_EQ(stage_count(Schedule{}), 0u);
  EXPECT_EQ(microbatch_count(Schedule{}), 0u);
}

TEST(StageGraph, ChainHasAnEdgeBetweenNeighbours) {
  const StageGraph graph = chain(3);
  ASSERT_EQ(graph.edges.size(), 2u);
  EXPECT_EQ(graph.edges[1], (StageGraph::Edge{StageId{1}, StageId{2}, true}));
  EXPECT_TRUE(chain(0).edges.empty());
}

TEST(ScheduleSpec, KnobsShowWhatIsSet) {
  EXPECT_EQ(knobs({.family = "gpipe"}), "");
  EXPECT_EQ(knobs({.family = "1f1b", .prefetch = {3}}), "prefetch=3");
  EXPECT_EQ(knobs({.family = "looped", .loop_batch = 8, .prefetch = {2, 2, 1, 0}}),
            "loop_batch=8, prefetch=2,2,1,0");
}

// The table of operations against what a microbatch's life says: whatever is kept is let go, and a
// full backward is its two halves.

struct Sum {
  int saved = 0, weight_saved = 0;
  unsigned times = 0;
  bool weight_gradient = false, input_gradient = false;
};
Sum sum(std::initializer_list<Op> ops) {
  Sum all;
  for (const Op op : ops) {
    const Operation& kind = operation(op);
    all.saved += kind.saved, all.weight_saved += kind.weight_saved;
    EXPECT_EQ(all.times & kind.times, 0u) << "a part of a stage's time is spent twice";
    all.times |= kind.times;
    all.weight_gradient |= kind.weight_gradient;
    all.input_gradient |= makes_input_gradient(op);
  }
  return all;
}

TEST(Operations, AMicrobatchKeepsNothingAfterItsBackward) {
  for (const Sum& life : {sum({Op::Forward, Op::Backward}),
                          sum({Op::Forward, Op::BackwardInput, Op::BackwardWeight})}) {
    EXPECT_EQ(life.saved, 0);
    EXPECT_EQ(life.weight_saved, 0);
    EXPECT_TRUE(life.weight_gradient && life.input_gradient);
  }
}

// S and T make nothing that B reads on their own stage: their collectives do.
TEST(Operations, SharesOfTheOutputLayerComputeKeepNoActivationsAndEachTakesATimeOfItsOwn) {
  const Sum both = sum({Op::HeadShare, Op::HeadRest});
  EXPECT_EQ(both.saved, 0);
  EXPECT_EQ(both.weight_saved, 0);
  EXPECT_TRUE(both.weight_gradient);
  EXPECT_FALSE(both.input_gradient);
  for (const Operation& known : kOperations) {
    EXPECT_EQ(is_head(known.op), known.op == Op::HeadShare || known.op == Op::HeadRest);
    EXPECT_TRUE(!is_head(known.op) || is_compute(known.op));
    EXPECT_TRUE(!is_head_collective(known.op) || known.task == TaskKind::Reduction);
  }
}

TEST(Operations, BIsIAndW) {
  const Sum whole = sum({Op::Backward}), halves = sum({Op::BackwardInput, Op::BackwardWeight});
  EXPECT_EQ(whole.saved, halves.saved);
  EXPECT_EQ(whole.weight_saved, halves.weight_saved);
  EXPECT_EQ(whole.times, halves.times);
}

TEST(Operations, OfItsOwnStageBAndIReadFAndWReadsIAndTheHostWhatWasSaved) {
  EXPECT_EQ(operation(Op::Forward).reads, std::nullopt);
  EXPECT_EQ(operation(Op::Backward).reads, Op::Forward);
  EXPECT_EQ(operation(Op::BackwardInput).reads, Op::Forward);
  EXPECT_EQ(operation(Op::BackwardWeight).reads, Op::BackwardInput);
  EXPECT_EQ(operation(Op::OptimizerStep).reads, std::nullopt);
  EXPECT_EQ(operation(Op::Offload).reads, Op::Forward);
  EXPECT_EQ(operation(Op::Reload).reads, Op::Offload);
}

TEST(Operations, EachHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (const Operation& known : kOperations) EXPECT_TRUE(words.insert(known.text).second);
}

// 0 -> 1 -> 2 with a skip 0 -> 2 of which nothing comes back.
StageGraph three_stages() {
  return {3,
          {{StageId{0}, StageId{1}, true},
           {StageId{0}, StageId{2}, false},
           {StageId{1}, StageId{2}, true}},
          {}};
}

using Message = std::tuple<std::uint32_t, StageId, Direction>;

std::vector<Message> read_by(const Action& action) {
  const StageGraph graph = three_stages();
  std::vector<Message> found;
  for_each_message_read(action, graph, StageEdges(graph),
                        [&](auto... message) { found.emplace_back(message...); });
  return found;
}

std::vector<Message> made_by(const Action& action) {
  const StageGraph graph = three_stages();
  std::vector<Message> found;
  for_each_message_made(action, graph, StageEdges(graph),
                        [&](auto... message) { found.emplace_back(message...); });
  return found;
}

TEST(ActionInputs, ForwardReadsAlongEveryEdgeIntoItsStage) {
  EXPECT_THAT(read_by(forward(StageId{0}, MicrobatchId{5})), IsEmpty());
  EXPECT_THAT(read_by(forward(StageId{2}, MicrobatchId{5})),
              ElementsAre(FieldsAre(1U, StageId{0}, Direction::Forward),
                          FieldsAre(2U, StageId{1}, Direction::Forward)));
}

TEST(ActionInputs, BackwardReadsGradientsOfTheEdgesThatHaveThem) {
  for (const auto make : {backward, backward_input}) {
    EXPECT_THAT(read_by(make(StageId{0}, MicrobatchId{5})),
                ElementsAre(FieldsAre(0U, StageId{1}, Direction::Backward)));
    EXPECT_THAT(made_by(make(StageId{2}, MicrobatchId{5})),
                ElementsAre(FieldsAre(2U, StageId{1}, Direction::Backward)));
  }
}

TEST(ActionInputs, WeightGradientsReadAndMakeNoMessage) {
  EXPECT_THAT(read_by(backward_weight(StageId{1}, MicrobatchId{5})), IsEmpty());
  EXPECT_THAT(made_by(backward_weight(StageId{1}, MicrobatchId{5})), IsEmpty());
}

TEST(ActionInputs, WhatOneActionMakesAnotherReads) {
  for (const auto make : {forward, backward})
    for (int stage = 0; stage < 3; ++stage)
      for (const auto& [edge, reader, direction] : made_by(make(StageId{stage}, MicrobatchId{5})))
        EXPECT_THAT(read_by(make(reader, MicrobatchId{5})),
                    ::testing::Contains(FieldsAre(edge, StageId{stage}, direction)));
}

}  // namespace
}  // namespace pfeife
