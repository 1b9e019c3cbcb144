// The judge: what it accepts, and each kind of mistake with its own reason.
#include "planner/ir/judge/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

/// The one message that there should be.
std::string only(const std::vector<std::string>& messages) {
  EXPECT_EQ(messages.size(), 1u);
  return messages.empty() ? "" : messages.front();
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Semantics kBlockingPair{Queues::Pair, Links::Delay, true};

/// Messages as "rank:position message".
std::vector<std::string> verdict(const Schedule& schedule, const Requirements& required,
                                 const Semantics& semantics = kBlockingPair) {
  std::vector<std::string> texts;
  for (const Violation& v : validate(schedule, required, semantics))
    texts.push_back(to_string(v.rank) + ":" + std::to_string(v.position) + " " + v.message);
  return texts;
}
std::vector<std::string> verdict(const std::string& text,
                                 const Semantics& semantics = kBlockingPair) {
  const Schedule schedule = read_schedule(text, "test");
  return verdict(schedule, requirements_of(schedule, has_transfers(schedule)), semantics);
}

/// Why a broken file is refused: by the reader, or the first thing the judge says.
std::string reason(const std::string& name) {
  const std::string path =
      std::string(PFEIFE_SOURCE_DIR) + "/tests/data/pytorch_schedules/broken/" + name + ".csv";
  try {
    const Schedule schedule = read_schedule_file(path);
    const auto found = verdict(schedule, requirements_of(schedule, has_transfers(schedule)));
    return found.empty() ? "accepted" : found.front();
  } catch (const ConfigError& error) {
    return std::string(error.what()).substr(path.size() + 1);
  }
}

TEST(Validate, EachOfTheBrokenFilesIsRefusedWithItsOwnReason) {
  const std::vector<std::pair<std::string, std::string>> reasons{
      {"backward_before_forward", "0:0 0B0 stands before 0F0, which it needs"},
      {"blank_row", "2:1: row 2 is empty"},
      {"cyclic_compute",
       "0:1 deadlock: rank 0 waits at 0B0 for 1B0 of rank 1; rank 1 waits at 1B0 for 1F1 before "
       "it; rank 1 waits at "
       "1F1 for 0F1 of rank 0; rank 0 waits at 0F1 for 0B0 before it; move 0F1 before 0B0 in the "
       "row of rank 0"},
      {"deadlock", "0:4 deadlock with blocking SEND and RECV: rank 1 waits to receive 0F1"},
      {"duplicate_forward", "0:2 0F1 is there a second time; first at rank 0, position 1"},
      {"empty_cell_in_lowered", "0:2 an idle cell has no meaning in a schedule with transfers"},
      {"header_row", "1:1: row 1, cell 1: 'rank0' is not an action: a stage number is missing"},
      {"input_without_weight", "0:2 0I0 has no 0W0"},
      {"lower_case",
       "1:1: row 1, cell 1: '0f0' is not an action: unknown kind 'f', did you mean F?"},
      {"microbatch_missing_in_cell",
       "1:5: row 1, cell 2: '0F' is not an action: a microbatch number is missing"},
      {"missing_microbatch", "1:2 stage 1 lacks F of microbatch 1"},
      {"missing_recv", "0:3 0SEND_F1 has no 1RECV_F1"},
      {"missing_send", "1:2 1RECV_F1 has no 0SEND_F1"},
      {"old_dialect_BW",
       "1:9: row 1, cell 3: '0BW0' is not an action: unknown kind 'BW' (the dialect before"},
      {"recv_after_use", "1:3 1RECV_F1 stands after 1F1, which needs what it receives"},
      {"recv_twice", "1:3 1RECV_F1 is there a second time; first at rank 1, position 2"},
      {"reduce_grad_too_early",
       "0:6 0REDUCE_GRAD stands before the last backward of stage 0 at position 8"},
      {"send_before_compute", "0:2 0SEND_F1 stands before 0F1, which makes what it sends"},
      {"send_order_swapped",
       "0:2 0SEND_F1 is sent to rank 1 where that rank receives 1RECV_F0: both sides must have the "
       "same order"},
      {"send_twice", "0:4 0SEND_F1 is there a second time; first at rank 0, position 3"},
      {"stage_on_two_ranks", "1:0 1F1: stage 1 is on rank 0 already; a stage lives on one rank"},
      {"trailing_text",
       "1:5: row 1, cell 2: '0F1junk' is not an action: 'junk' follows the end of the action"},
      {"unknown_kind",
       "1:1: row 1, cell 1: '0X0' is not an action: unknown kind 'X'; allowed: F B I W"},
      {"weight_before_input", "0:2 0W0 stands before 0I0, which it needs"},
  };
  EXPECT_EQ(reasons.size(), 24u);
  for (const auto& [name, expected] : reasons)
    EXPECT_THAT(reason(name), HasSubstr(expected)) << name;
}

TEST(Validate, OnOneRankEverythingStandsBehindWhatItNeeds) {
  const auto first = [](const std::string& text) { return verdict(text).at(0); };
  EXPECT_THAT(verdict("0F1,1F1,1B1,0B1,0F0,1F0,1B0,0B0\n"), ElementsAre());
  EXPECT_EQ(first("0F0,1F0,1B0,0B0,1F1,0F1,1B1,0B1\n"),
            "0:4 1F1 stands before 0F1, which it needs");
  EXPECT_EQ(first("0F0,1F0,1B0,0B0,0F1,1F1,0B1,1B1\n"),
            "0:6 0B1 stands before 1B1, which it needs");
  EXPECT_EQ(first("0F0,1F0,1B0,0B0,0F1,1F1,0I1,1I1,0W1,1W1\n"),
            "0:6 0I1 stands before 1I1, which it needs");
  EXPECT_EQ(first("0F0,1F0,1B0,0B0,0F1,1F1,0I1,1B1,0W1\n"),
            "0:6 0I1 stands before 1B1, which it needs");
  EXPECT_EQ(first("0F0,0B0,0I1,0F1,0W1\n"), "0:2 0I1 stands before 0F1, which it needs");
  EXPECT_EQ(first("0F0,0B0,0F1,0W1,0I1\n"), "0:3 0W1 stands before 0I1, which it needs");
}

TEST(Validate, ValuesAndGradientsTravelOnceMadeAndBeforeTheyAreUsed) {
  const auto first = [](const std::string& text) { return verdict(text).at(0); };
  EXPECT_EQ(first("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "1:3 1SEND_B0 has no 0RECV_B0");
  EXPECT_EQ(first("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0\n"), "0:2 0RECV_B0 has no 1SEND_B0");
  EXPECT_EQ(first("0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "0:3 0RECV_B0 stands after 0B0, which needs what it receives");
  EXPECT_EQ(first("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n"),
            "1:2 1SEND_B0 stands before 1B0, which makes what it sends");
  EXPECT_EQ(first("0F0,0SEND_F0,0I0,0RECV_B0,0W0\n1RECV_F0,1F0,1B0,1SEND_B0\n"),
            "0:3 0RECV_B0 stands after 0I0, which needs what it receives");
  EXPECT_EQ(first("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n"),
            "1:2 1SEND_B0 stands before 1I0, which makes what it sends");
  EXPECT_EQ(
      first("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n"),
      "0:3 the gradient of stage 1 for stage 0 is neither sent nor received for microbatch 0");
  EXPECT_EQ(first("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n"),
            "1:3 the value of stage 0 for stage 1 is neither sent nor received for microbatch 0");
}

TEST(Validate, OnlyStagesAndMicrobatchesThatAreThereAreComputed) {
  Schedule schedule = read_schedule("0F0,0B0\n1F0,1B0,2F0,1F7,2SEND_F0\n", "test");
  schedule.rows[0].emplace_back(forward(StageId{-1}, MicrobatchId{0}));
  schedule.rows[0].emplace_back(forward(StageId{0}, MicrobatchId{-1}));
  EXPECT_THAT(verdict(schedule, {chain(2), 1, false}),
              ElementsAre("0:2 -1F0: there is no stage -1, only 2",
                          "0:3 0F-1: there is no microbatch -1, only 1",
                          "1:2 2F0: there is no stage 2, only 2",
                          "1:3 1F7: there is no microbatch 7, only 1",
                          "1:4 2SEND_F0: there is no stage 2, only 2"));
}

// No file has such actions: its reader refuses them.
TEST(Validate, ActionsMustBeWhole) {
  Action without_microbatch = forward(StageId{0}, MicrobatchId{0});
  without_microbatch.microbatch.reset();
  Action without_peer = send(StageId{0}, StageId{1}, MicrobatchId{0}, Direction::Forward);
  without_peer.peer.reset();
  Action step_of_microbatch = stage_action(Op::OptimizerStep, StageId{0});
  step_of_microbatch.microbatch = MicrobatchId{0};
  for (const Action& half : {without_microbatch, without_peer, step_of_microbatch}) {
    Schedule schedule = read_schedule("0F0,0B0\n", "test");
    schedule.rows[0].emplace_back(half);
    EXPECT_THAT(verdict(schedule, {chain(1), 1, true}),
                ElementsAre("0:2 " + to_string(half) + " is not a whole action"));
  }
}

TEST(Validate, OneBackwardAMicrobatchIsEnough) {
  EXPECT_THAT(verdict("0F0,0B0,0B0\n"),
              ElementsAre("0:2 0B0 is there a second time; first at rank 0, position 1"));
  EXPECT_THAT(verdict("0F0,0B0,0I0,0W0\n"),
              ElementsAre("0:2 0I0 repeats what 0B0 does", "0:3 0W0 repeats what 0B0 does"));
}

TEST(Validate, AStageOnTheWrongRankIsToldOnceForEachSuchRank) {
  EXPECT_THAT(verdict("0F0,0B0\n1F0,0F1,0B1,1B0,1F1,1B1\n0F2,0B2,1F2,1B2\n"),
              ElementsAre("1:1 0F1: stage 0 is on rank 0 already; a stage lives on one rank",
                          "2:0 0F2: stage 0 is on rank 0 already; a stage lives on one rank",
                          "2:2 1F2: stage 1 is on rank 1 already; a stage lives on one rank"));
}

TEST(Validate, AValueThatNeedsNoGradientGetsNone) {
  Requirements one_way{chain(2), 1, true};
  one_way.stages.edges[0].gradient = false;
  EXPECT_THAT(
      verdict(read_schedule("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "test"),
              one_way),
      ElementsAre("0:2 0RECV_B0: no gradient goes from stage 1 to stage 0",
                  "1:3 1SEND_B0: no gradient goes from stage 1 to stage 0"));
}

TEST(Validate, AValueThatNeedsNoGradientTravelsOneWay) {
  Requirements one_way{chain(2), 1, true};
  one_way.stages.edges[0].gradient = false;
  EXPECT_THAT(verdict(read_schedule("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0\n", "test"), one_way),
              ElementsAre());
  EXPECT_THAT(
      verdict(read_schedule("0F0,0B0\n1F0,1B0\n", "test"), one_way),
      ElementsAre(
          "1:2 the value of stage 0 for stage 1 is neither sent nor received for microbatch 0"));
}

TEST(Validate, AValueThatNeedsNoGradientOrdersNoBackwardsOnItsRank) {
  Requirements one_way{chain(2), 1, true};
  one_way.stages.edges[0].gradient = false;
  EXPECT_THAT(verdict(read_schedule("0F0,1F0,0B0,1B0\n", "test"), one_way), ElementsAre());
}

// Where a stage is on two ranks, its messages are not judged besides.
TEST(Validate, OfAStageOnTwoRanksOnlyThatIsTold) {
  EXPECT_MESSAGE(only(verdict("0F0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,0RECV_B0\n")));
  EXPECT_MESSAGE(only(verdict("0F0,0SEND_F0,0RECV_B0,0B0,1SEND_B0\n1RECV_F0,1F0,1B0\n")));
}

TEST(Validate, ADeadlockIsToldByItsSmallestCircle) {
  EXPECT_THAT(verdict("0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1\n"
                      "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
              ElementsAre("0:4 deadlock with blocking SEND and RECV: "
                          "rank 1 waits to receive 0F1 from rank 0, but rank 0 is at 0RECV_B0, "
                          "which comes before 0SEND_F1 in its row; "
                          "rank 0 waits to receive 1B0 from rank 1, but rank 1 is at 1RECV_F1, "
                          "which comes before 1SEND_B0 in its row; "
                          "move 0RECV_B0 behind 0SEND_F1 in the row of rank 0"));
}

TEST(Validate, TorchTablesAreRightUnderEveryQueue) {
  for (const OracleRow& row : oracle_rows("pytorch_schedules/index.csv")) {
    const std::string file = row.at("file");
    const Schedule schedule = read_schedule_file(std::string(PFEIFE_SOURCE_DIR) +
                                                 "/tests/data/pytorch_schedules/" + file);
    for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank})
      for (const bool blocking : {false, true})
        EXPECT_THAT(verdict(schedule, requirements_of(schedule, has_transfers(schedule)),
                            {queues, Links::Delay, blocking}),
                    ElementsAre())
            << file;
  }
}

TEST(Validate, AllViolationsAreToldAtOnceInRowOrder) {
  EXPECT_THAT(
      verdict("0F0,0F0,0B1,0REDUCE_GRAD\n1F0,1B0,1F1,1W1\n"),
      ElementsAre("0:1 0F0 is there a second time; first at rank 0, position 0",
                  "0:4 stage 0 lacks F of microbatch 1",
                  "0:4 stage 0 lacks B (or I and W) of microbatch 0", "1:3 1W1 has no 1I1"));
}

TEST(Validate, WhatIsMissingIsToldInRanges) {
  EXPECT_THAT(verdict("0F0,0B0,0F9,0B9,0F4,0B4\n2F0,2B0\n"),
              ElementsAre("0:6 stage 1 is on no rank", "0:6 stage 0 lacks F of microbatch 1-3, 5-8",
                          "0:6 stage 0 lacks B (or I and W) of microbatch 1-3, 5-8",
                          "1:2 stage 2 lacks F of microbatch 1-9",
                          "1:2 stage 2 lacks B (or I and W) of microbatch 1-9"));
  EXPECT_EQ(verdict("0F999999\n999999F0\n").size(), 5u);  // no table of all stages and microbatches
}

TEST(Validate, StateActionsAreJudged) {
  EXPECT_THAT(verdict("0UNSHARD,0F0,0RESHARD,0B0,0OPTIMIZER_STEP\n"),
              ElementsAre("0:3 0B0 computes while the parameters of stage 0 are not gathered (no "
                          "UNSHARD since the last "
                          "RESHARD)"));
  EXPECT_THAT(
      verdict("0F0,0OPTIMIZER_STEP,0B0\n"),
      ElementsAre("0:1 0OPTIMIZER_STEP stands before the last backward of stage 0 at position 2"));
  EXPECT_THAT(verdict("0F0,0B0,0OPTIMIZER_STEP,0REDUCE_GRAD\n"),
              ElementsAre("0:3 0REDUCE_GRAD stands after the optimizer step that needs it"));
  EXPECT_THAT(verdict("0F0,0B0,0OPTIMIZER_STEP\n1F0,1B0\n"),
              ElementsAre("1:2 1OPTIMIZER_STEP is missing, while other stages have theirs"));
}

TEST(Validate, TiedStagesMustReduce) {
  Requirements required{chain(2), 1, true};
  required.stages.tied = {{StageId{0}, StageId{1}}};
  const Schedule schedule =
      read_schedule("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n", "test");
  EXPECT_THAT(
      verdict(schedule, required),
      ElementsAre("0:4 0REDUCE_GRAD is missing: stage 0 shares a parameter with other stages"));
}

TEST(Validate, ReplicasMustReduceEachStage) {
  Requirements required{chain(2), 1, true};
  required.stages.replicas = true;
  const Schedule schedule =
      read_schedule("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n", "test");
  EXPECT_THAT(verdict(schedule, required),
              ElementsAre("0:4 0REDUCE_GRAD is missing: replicas reduce the gradients of each "
                          "stage"));
}

// The optimizer step of stage 0 waits for the reduction with stage 1, whose last backward waits for
// what comes after the step.
TEST(Validate, AReductionCanBePartOfACircle) {
  Requirements required{chain(2), 2, true};
  required.stages.tied = {{StageId{0}, StageId{1}}};
  const Schedule schedule = read_schedule(
      "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0OPTIMIZER_STEP,0F1,0SEND_F1,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1OPTIMIZER_STEP\n",
      "test");
  const auto found = verdict(schedule, required);
  ASSERT_EQ(found.size(), 3u);  // reduction and step too early, and the circle
  EXPECT_THAT(found, ::testing::Contains(HasSubstr("the reduction of 0REDUCE_GRAD waits for")));
}

// Rank 1 reduces before it sends what rank 0 needs to be ready for the same reduction.
TEST(Validate, ABlockingReductionBeforeWhatItsPartnerNeedsIsADeadlock) {
  Requirements required{chain(2), 1, true};
  required.stages.tied = {{StageId{0}, StageId{1}}};
  const Schedule schedule = read_schedule(
      "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1REDUCE_GRAD,1SEND_B0\n", "test");
  EXPECT_THAT(
      verdict(schedule, required),
      ElementsAre("0:4 deadlock with blocking SEND, RECV and REDUCE_GRAD: "
                  "the reduction of 0REDUCE_GRAD waits for 0RECV_B0 before it in the row of "
                  "rank 0; rank 0 waits to receive 1B0 from rank 1, but rank 1 is at "
                  "1REDUCE_GRAD before 1SEND_B0 in its row; "
                  "move 1SEND_B0 before 1REDUCE_GRAD in the row of rank 1"));
  EXPECT_TRUE(validate(schedule, required, {.queues = Queues::Pair}).empty());
}

TEST(Validate, SkipsNeedAValueThatFlows) {
  const Schedule schedule =
      read_schedule("0F0,0SKIP_SEND_F0>2,0B0\n1F0,1B0\n2SKIP_RECV_F0<0,2F0,2B0\n", "test");
  EXPECT_MESSAGE(verdict(schedule, {chain(3), 1, true}).front());
  // Taken as its own requirement it is a skip without a gradient; only the chain's transfers are
  // missing.
  for (const std::string& message : verdict(schedule, requirements_of(schedule, true)))
    EXPECT_MESSAGE(message);
}

// Stage 0 sends to 2 and 3, and gets a gradient from 3 alone; 1 sends to 9, which is not there.
TEST(Validate, SkipsThatAreTransferredAreRequired) {
  const Schedule schedule = read_schedule(
      "0SKIP_SEND_F0>2,0SKIP_SEND_F0>3,0SKIP_SEND_F1>3,0SKIP_RECV_B0<3\n"
      "1SKIP_SEND_F0>9,1SKIP_SEND_F0>3\n2F0\n3F0\n",
      "test");
  using Edge = StageGraph::Edge;
  EXPECT_THAT(requirements_of(schedule, true).stages.edges,
              ElementsAre(Edge{StageId{0}, StageId{1}, true}, Edge{StageId{0}, StageId{2}, false},
                          Edge{StageId{0}, StageId{3}, true}, Edge{StageId{1}, StageId{2}, true},
                          Edge{StageId{1}, StageId{3}, false}, Edge{StageId{2}, StageId{3}, true}));
}

TEST(Validate, NoRowsAreNoSchedule) {
  EXPECT_THAT(verdict(Schedule{}, {chain(1), 1, true}),
              ElementsAre("0:0 the schedule has no rows: one a rank is expected"));
}

TEST(Validate, TransfersOnOneRankAreRefused) {
  EXPECT_THAT(verdict("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n"),
              ElementsAre("0:1 0SEND_F0: stages 0 and 1 are both on rank 0, nothing is sent",
                          "0:2 1RECV_F0: stages 0 and 1 are both on rank 0, nothing is sent"));
}

TEST(Validate, WhatDeadlocksWhenBlockingMayRunWhenNot) {
  // Both ranks send before they receive: fine if SEND does not hold the rank, a circle in a queue
  // of pairs.
  const std::string text =
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
  EXPECT_THAT(verdict(text, {Queues::Edge, Links::Delay, false}), ElementsAre());
  EXPECT_MESSAGE(only(verdict(text, {Queues::Pair, Links::Delay, false})));
  EXPECT_MESSAGE(only(verdict(text)));
}

TEST(Validate, LoweredFamiliesAreRight) {
  for (const Family& known : families())
    for (const std::size_t d : {1, 2, 3, 4, 7})
      for (const std::size_t n : {1, 3, 8})
        for (const std::size_t v : {1, 2, 3}) {
          const ScheduleSpec spec{
              .family = known.name, .ranks = d, .microbatches = n, .stages_per_rank = v};
          if (refusal(spec)) continue;
          const StageCosts costs = uniform_costs(spec.stages(), Nanoseconds{3}, Nanoseconds{4},
                                                 Nanoseconds{2}, Nanoseconds{1});
          const Schedule compute = generate(spec);
          EXPECT_THAT(verdict(compute, {stage_graph(costs), n, false}), ElementsAre());
          for (const TransferOrder order : {TransferOrder::Ready, TransferOrder::Torch})
            EXPECT_THAT(verdict(lower(compute, costs, placement_for(spec),
                                      {.transfers = order, .unshard = true}),
                                {stage_graph(costs), n, true}),
                        ElementsAre())
                << spec.family << " " << d << " " << n << " " << v;
        }
}

TEST(MarkedGrid, ShowsTheCellAndItsNeighbourhood) {
  const Schedule schedule = read_schedule("0F0,0F1,,0B0,0B1\n,1F0,1F1,1B0,1B1,1B1\n", "test");
  const auto found = validate(schedule, requirements_of(schedule, false));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(marked_grid(schedule, found[0]),
            "        1    2    3    4    5      6  7  8  9\n"
            "rank 0  0F1  .    0B0  0B1\n"
            "rank 1  1F0  1F1  1B0  1B1  >1B1<\n"
            "rank 1, position 5: 1B1 is there a second time; first at rank 1, position 4\n");
}

}  // namespace
}  // namespace pfeife
