// One rank that computes slower: a table of 1F1B, and slack by hand.
#include "planner/cost/estimate/slow_ranks.h"

#include <gtest/gtest.h>

#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

DependencyGraph graph_of(const ScheduleSpec& spec, const StageCosts& costs) {
  const Placement placement = placement_for(spec);
  return dependencies(lower(generate(spec), costs, placement), stage_graph(costs), placement, {});
}

// 1F1B, F 1 and B 2, no transfers, one rank 10 % slower: D = 4, N = 8 takes 33 and then 34.5, 34.8,
// 35.1, 35.4 by rank; D = 8, N = 16 takes 69 and then 71.7 to 73.8.
TEST(SlowRanks, OfOneForwardOneBackwardCostMoreTheLaterTheRank) {
  const Nanoseconds unit{1000};
  const ScheduleSpec four{.family = "1f1b", .ranks = 4, .microbatches = 8};
  const StageCosts costs = uniform_costs(4, unit, unit, unit, Nanoseconds{0});
  const SlowRanks slow = slow_ranks(graph_of(four, costs), costs, 1.1);
  EXPECT_EQ(slow.now, Nanoseconds{33'000});
  EXPECT_EQ(slow.steps, (std::vector<Nanoseconds>{Nanoseconds{34'500}, Nanoseconds{34'800},
                                                  Nanoseconds{35'100}, Nanoseconds{35'400}}));
  const ScheduleSpec eight{.family = "1f1b", .ranks = 8, .microbatches = 16};
  const StageCosts more = uniform_costs(8, unit, unit, unit, Nanoseconds{0});
  const SlowRanks of_eight = slow_ranks(graph_of(eight, more), more, 1.1);
  EXPECT_EQ(of_eight.now, Nanoseconds{69'000});
  EXPECT_EQ(of_eight.steps.front(), Nanoseconds{71'700});
  EXPECT_EQ(of_eight.steps.back(), Nanoseconds{73'800});
  for (std::size_t r = 1; r < 8; ++r) EXPECT_GE(of_eight.steps[r], of_eight.steps[r - 1]);
}

// Two ranks, one microbatch: F0 F1 B1 B0, nothing beside anything: every rank counts in full, by
// what it computes: 3 of 6, 3 of 6. The optimizer of rank 1 (1) ends with B0's (2) still to come:
// it may take three times as long, and the rest of rank 1 nothing.
TEST(SlowRanks, SlackIsWhatNobodyWaitsFor) {
  const Nanoseconds unit{1000};
  StageCosts costs = uniform_costs(2, unit, unit, unit, Nanoseconds{0});
  const ScheduleSpec spec{.family = "1f1b", .ranks = 2, .microbatches = 1};
  const SlowRanks slow = slow_ranks(graph_of(spec, costs), costs, 2);
  EXPECT_EQ(slow.now, Nanoseconds{6'000});
  EXPECT_EQ(slow.steps, (std::vector<Nanoseconds>{Nanoseconds{9'000}, Nanoseconds{9'000}}));
  for (const double slack : slow.slack)
    EXPECT_NEAR(slack, 1.0015, 0.0006);  // 3 x 0.002 is 0.1 % of 6
  // Rank 1 computes nothing but an optimizer step of 2 while rank 0 has B of 2 and one of 2 to go.
  costs.stages[1].forward = costs.stages[1].backward_input = costs.stages[1].backward_weight =
      Nanoseconds{0};
  costs.stages[0].optimizer = costs.stages[1].optimizer = Nanoseconds{2000};
  const SlowRanks idle = slow_ranks(graph_of(spec, costs), costs, 1.5);
  EXPECT_EQ(idle.now, Nanoseconds{5'000});  // F 1, B 2, optimizer 2
  EXPECT_EQ(idle.steps[1], Nanoseconds{5'000});
  EXPECT_EQ(idle.slack[1], SlowRanks::kMostSlack);
  EXPECT_EQ(idle.steps[0], Nanoseconds{7'500});
}

TEST(SlowRanks, InWords) {
  SlowRanks slow{.factor = 1.1,
                 .rank = RankId{1},
                 .now = Nanoseconds{33'000'000},
                 .steps = {Nanoseconds{34'500'000}, Nanoseconds{34'800'000}},
                 .slack = {1, 2}};
  const std::vector<std::string> text = sentences(slow);
  ASSERT_EQ(text.size(), 3U);
  EXPECT_EQ(
      text[0],
      "if rank 1 computes 10 % slower, the estimated step is 34.8 ms in place of 33 (+5.5 %)");
  EXPECT_EQ(text[1],
            "estimated step if one rank computes 10 % slower, by rank from 0, ms: 34.5 (+4.5 %), "
            "34.8 (+5.5 %)");
  EXPECT_EQ(text[2],
            "slack: how much slower each rank may compute before the step is 0.1 % longer, by "
            "rank: 0.0 %, over 100 %");
}

}  // namespace
}  // namespace pfeife
