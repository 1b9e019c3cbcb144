#include "planner/ir/schedule/schedule.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

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

}  // namespace
}  // namespace pfeife
