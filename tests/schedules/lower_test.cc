// Lowering in ready order: examples by hand, and what it refuses.
#include "planner/ir/schedule/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

StageCosts costs_of(std::size_t stages, int transfer) {
  return uniform_costs(stages, Nanoseconds{10}, Nanoseconds{10}, Nanoseconds{10},
                       Nanoseconds{transfer});
}
std::string lowered(const std::string& text, const StageCosts& costs,
                    const LoweringOptions& options = {}) {
  const Schedule compute = read_schedule(text, "test");
  return write_schedule(lower(compute, costs, *placement_of(compute), options));
}
std::string lowering_error(const std::string& text, const StageCosts& costs,
                           const Placement& placement) {
  return pfeife::message_of([&] { lower(read_schedule(text, "test"), costs, placement); });
}

// F = 10, B = 20, transfer 5, both ranks F0 F1 B0 B1:
//   rank 0  0F0 [0,10)  0F1 [10,20)             0B0 [50,70)  0B1 [70,90)
//   rank 1              1F0 [15,25)  1F1 [25,35) 1B0 [35,55) ...
// B0 of rank 1 ends at 55, so rank 0 starts 0B0 at 60. Ready times: F0 10, F1 20, B0 55, B1 75.
TEST(ReadyOrder, SendsAndReceivesStandWhereTheValueIsMade) {
  EXPECT_EQ(lowered("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", costs_of(2, 5)),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0OPTIMIZER_STEP\n"
            "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1,1OPTIMIZER_STEP\n");
}

// F of stage 0 takes 100, its B 20, F of stage 1 takes 10, its B 20, a transfer 80:
//   rank 0  0F0 [0,100)  0F1 [100,200)  0F2 [200,300)  0B0 [300,320)  0B1 [390,410)  0B2 [490,510)
//   rank 1  1F0 [180,190)  1B0 [190,210)  1F1 [280,290)  1B1 [290,310)  1F2 [380,390)  1B2
//   [390,410)
// Ready times: F0 100, F1 200, F2 300, B0 210, B1 310, B2 410.
TEST(ReadyOrder, LongTransfersArriveLate) {
  StageCosts costs = costs_of(2, 80);
  costs.stages[0].forward = Nanoseconds{100};
  EXPECT_EQ(lowered("0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n", costs,
                    {.optimizer_step = false}),
            "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0RECV_B0,0SEND_F2,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
            "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1RECV_F2,1SEND_B1,1F2,1B2,1SEND_B2\n");
}

// F of stage 0 takes 21, F of stage 1 10, its B 20, a transfer 5: the overlap begins when F1
// arrives, at 47. In half the time of both it ends at 62, before 0F2 does at 63; else at 77, while
// 0F3 runs.
TEST(ReadyOrder, AnOverlapLastsItsPartsTimesTheFactor) {
  StageCosts costs = costs_of(2, 5);
  costs.stages[0].forward = Nanoseconds{21};
  const std::string text =
      "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,(1F1;1B0)OVERLAP_F_B,1F2,1B1,1F3,1B2,1B3\n";
  costs.overlap_factor = 0.5;
  EXPECT_THAT(lowered(text, costs), HasSubstr(",0F2,0RECV_B0,0SEND_F2,0F3,"));
  costs.overlap_factor = 1;
  EXPECT_THAT(lowered(text, costs), HasSubstr(",0F2,0SEND_F2,0F3,0RECV_B0,"));
}

// Three stages; stage 0 also feeds stage 2: one more message, and a gradient that comes back from
// there.
TEST(ReadyOrder, SkipsAreSentToEveryReader) {
  StageCosts costs = costs_of(3, 1);
  costs.pairs.insert(costs.pairs.begin() + 1,
                     {StageId{0}, StageId{2}, Bytes{1}, Bytes{1}, Nanoseconds{1}, Nanoseconds{1}});
  EXPECT_EQ(lowered("0F0,0B0\n1F0,1B0\n2F0,2B0\n", costs, {.optimizer_step = false}),
            "0F0,0SEND_F0,0SKIP_SEND_F0>2,0SKIP_RECV_B0<2,0RECV_B0,0B0\n"
            "1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0\n"
            "2SKIP_RECV_F0<0,2RECV_F0,2F0,2B0,2SKIP_SEND_B0>0,2SEND_B0\n");
}

TEST(ReadyOrder, ValuesThatNeedNoGradientGetNone) {
  StageCosts costs = costs_of(2, 1);
  costs.pairs[0].has_gradient = false;
  EXPECT_EQ(lowered("0F0,0B0\n1F0,1B0\n", costs, {.optimizer_step = false}),
            "0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n");
}

TEST(Lower, TiedStagesReduceAndTheirOptimizerStepsComeLast) {
  StageCosts costs = costs_of(4, 1);
  costs.reductions.push_back({{StageId{0}, StageId{3}}, Bytes{8}, Nanoseconds{2}});
  const LoweringOptions options;
  EXPECT_EQ(lowered("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n", costs, options),
            "0F0,0SEND_F0,2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2SEND_B0,0RECV_B0,0B0,0REDUCE_GRAD,"
            "2OPTIMIZER_STEP,"
            "0OPTIMIZER_STEP\n"
            "1RECV_F0,1F0,1SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,1RECV_B0,1B0,1SEND_B0,3REDUCE_GRAD,"
            "1OPTIMIZER_STEP,"
            "3OPTIMIZER_STEP\n");
}

TEST(Lower, ReplicasReduceEachStageRightBehindItsLastBackward) {
  StageCosts costs = costs_of(4, 1);
  costs.replicas.assign(4, {Nanoseconds{1}, Nanoseconds{2}});
  EXPECT_EQ(lowered("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n", costs, {}),
            "0F0,0SEND_F0,2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2SEND_B0,2REDUCE_GRAD,0RECV_B0,0B0,"
            "0REDUCE_GRAD,2OPTIMIZER_STEP,0OPTIMIZER_STEP\n"
            "1RECV_F0,1F0,1SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,3REDUCE_GRAD,1RECV_B0,1B0,1SEND_B0,"
            "1REDUCE_GRAD,3OPTIMIZER_STEP,1OPTIMIZER_STEP\n");
}

TEST(Lower, KeepsTheStateActionsThatAreThere) {
  EXPECT_EQ(lowered("0UNSHARD,0F0,0B0,0OPTIMIZER_STEP,0RESHARD\n", costs_of(1, 0),
                    {.unshard = true, .reduce_grad = ReduceGrad::EveryStage}),
            "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0OPTIMIZER_STEP,0RESHARD\n");
  // A row that only releases has its parameters from elsewhere.
  EXPECT_EQ(
      lowered("0F0,0B0,0RESHARD\n", costs_of(1, 0), {.unshard = true, .optimizer_step = false}),
      "0F0,0B0,0RESHARD\n");
}

TEST(Lower, StagesWithoutABackwardHaveNothingToReduceOrToStep) {
  EXPECT_EQ(lowered("0F0,1F0\n2F0\n", costs_of(3, 1), {.reduce_grad = ReduceGrad::EveryStage}),
            "0F0,1F0,1SEND_F0\n2RECV_F0,2F0\n");
}

TEST(Lower, ALocalHandOverNeedsNoTransfer) {
  EXPECT_EQ(
      lowered("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", costs_of(4, 1), {.optimizer_step = false}),
      "0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0\n"
      "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0\n");
}

TEST(Lower, CyclicOrdersAreToldWithTheWaitingActions) {
  for (const TransferOrder order : {TransferOrder::Ready, TransferOrder::Torch}) {
    const Schedule cyclic = read_schedule("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", "test");
    try {
      lower(cyclic, costs_of(2, 0), round_robin(2, 2), {.transfers = order});
      FAIL();
    } catch (const ConfigError& error) {
      EXPECT_MESSAGE(error.what());
    }
  }
}

TEST(Lower, WrongInputIsRefused) {
  const StageCosts costs = costs_of(2, 0);
  const Placement placement = round_robin(2, 2);
  EXPECT_MESSAGE(lowering_error("0F0,0F0\n1F0,1B0\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0,0B0,0I0\n1F0,1B0\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0,0SEND_F0\n1F0,1B0\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0,1F0\n1B0,0B0\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0,2F0\n1F0,1B0\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0\n1F0\n0F1\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0,0B0\n1F0,1F999999\n", costs, placement));
  EXPECT_MESSAGE(lowering_error("0F0,0B0\n1F0,1F1\n", costs, placement));
  // Only those that wait are named.
  const std::string one = lowering_error("0F0,0F1\n1B0,1F0,1F1,1B1\n", costs, placement);
  EXPECT_THAT(one, HasSubstr("rank 1 waits at 1B0 for 1F0"));
  EXPECT_THAT(one, ::testing::Not(HasSubstr("rank 0 waits")));
}

TEST(Lower, TheOrderDoesNotDependOnIdleCells) {
  const ScheduleSpec spec{
      .family = "interleaved_1f1b", .ranks = 3, .microbatches = 6, .stages_per_rank = 2};
  const Schedule with_idle = generate(spec);
  Schedule without = with_idle;
  for (auto& row : without.rows)
    std::erase_if(row,
                  [](const Cell& cell) { return std::holds_alternative<std::monostate>(cell); });
  EXPECT_NE(with_idle, without);
  EXPECT_EQ(lower(with_idle, costs_of(6, 2), placement_for(spec)),
            lower(without, costs_of(6, 2), placement_for(spec)));
}

}  // namespace
}  // namespace pfeife
