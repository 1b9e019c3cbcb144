// What fills a rank's memory at its peak.
#include "experiments/plans/memory_contents.h"

#include <gtest/gtest.h>

#include "planner/cost/estimate/memory.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/ir/rows.h"

namespace pfeife {
namespace {

using testing::rows;
using ns = Nanoseconds;

Plan plan_with(Schedule schedule) {
  Plan plan;
  plan.placement = *placement_of(schedule);
  plan.schedule = std::move(schedule);
  return plan;
}

StageCosts costs_of(std::size_t stages) {
  StageCosts costs = uniform_costs(stages, ns{1}, ns{1}, ns{1}, ns{1});
  for (StageCost& stage : costs.stages) {
    stage.parameters = Bytes{1000}, stage.gradients = Bytes{300};
    stage.optimizer_state = Bytes{2000};
    stage.saved = Bytes{100}, stage.weight_saved = Bytes{40};
    stage.temporary = PassBytes::same(Bytes{7});
  }
  for (StageValue& value : costs.values) value.bytes = value.gradient_bytes = Bytes{5};
  return costs;
}

// Rank 0 at 0F1: two microbatches saved, the value that it makes still to be sent, 7 temporary.
// Rank 1 at 1F1: what 1W0 waits for, one microbatch saved, the buffer that it reads.
TEST(MemoryContents, AreThoseOfTheCellWithMostMemory) {
  const Plan plan =
      plan_with(rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0I0 0W0 0RECV_B1 0I1 0W1",
                      "1RECV_F0 1F0 1I0 1SEND_B0 1RECV_F1 1F1 1W0 1I1 1SEND_B1 1W1"}));
  const auto ranks = memory_contents(plan, costs_of(2));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0], (MemoryContents{.parameters = Bytes{1000},
                                      .gradients = Bytes{300},
                                      .optimizer = Bytes{2000},
                                      .saved = Bytes{200},
                                      .held_for_weights = Bytes{0},
                                      .buffers = Bytes{5},
                                      .temporary = Bytes{7}}));
  EXPECT_EQ(ranks[1], (MemoryContents{.parameters = Bytes{1000},
                                      .gradients = Bytes{300},
                                      .optimizer = Bytes{2000},
                                      .saved = Bytes{100},
                                      .held_for_weights = Bytes{40},
                                      .buffers = Bytes{5},
                                      .temporary = Bytes{7}}));
}

TEST(MemoryContents, AddUpToThePeakAndNothingIsNegative) {
  for (const char* family : {"gpipe", "1f1b", "zb_h1"}) {
    ScheduleSpec spec{.family = family, .ranks = 4, .microbatches = 8, .stages_per_rank = 1};
    const StageCosts costs = costs_of(4);
    const Schedule computed = generate(spec);
    const Plan plan = plan_with(lower(computed, costs, *placement_of(computed)));
    const auto ranks = memory_contents(plan, costs);
    ASSERT_EQ(ranks.size(), 4U);
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_EQ(ranks[r].total(), memory(plan.schedule, RankId{r}, costs, plan.placement).peak());
      for (const Bytes term :
           {ranks[r].parameters, ranks[r].gradients, ranks[r].optimizer, ranks[r].saved,
            ranks[r].held_for_weights, ranks[r].buffers, ranks[r].temporary})
        EXPECT_GE(term, Bytes{0}) << family << " rank " << r;
      EXPECT_EQ(ranks[r].parameters, Bytes{1000});
    }
  }
}

}  // namespace
}  // namespace pfeife
