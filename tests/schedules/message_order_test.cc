// Messages in other orders: against a case worked out by hand, and valid whatever the rule.
#include "planner/ir/schedule/message_order.h"

#include <gmock/gmock.h>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/support/random_program.h"

namespace pfeife {
namespace {

std::vector<Nanoseconds> lengths_of(const Trace& trace) {
  std::vector<Nanoseconds> lengths;
  for (const Event& event : trace.events) lengths.push_back(event.end - event.start);
  return lengths;
}

Trace estimated(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                Queues queues) {
  return std::get<Trace>(
      estimate(dependencies(lowered, stage_graph(costs), placement, {.queues = queues}), costs));
}

/// Two stages on two ranks: F 1 and B 10 on the first, F 1 and B 2 on the second, 4 for a message;
/// one queue for both ways.
struct TwoRanks {
  TwoRanks() {
    costs.stages[0].backward_input = Nanoseconds{10};
    costs.stages[1].backward_input = Nanoseconds{2};
    compute = read_schedule("0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n", "by hand");
    lowered = lower(compute, costs, placement);
  }
  Schedule by(MessageRule rule) const {
    return with_message_order(lowered, stage_graph(costs), placement,
                              lengths_of(estimated(lowered, costs, placement, Queues::None)),
                              Queues::Pair, rule);
  }
  Nanoseconds time(const Schedule& schedule) const {
    return step_time(estimated(schedule, costs, placement, Queues::Pair));
  }

  StageCosts costs =
      uniform_costs(2, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0}, Nanoseconds{4});
  Placement placement = round_robin(2, 2);
  Schedule compute, lowered;
};

// Values 0, 1 and 2 are made at 1, 2 and 3 and go from 1 to 13 if none is overtaken. Gradient 0 is
// made at 8 (value 0 comes at 5, F, B). First ready: it goes from 13 to 17, then rank 0 is busy for
// its three backwards of 10 (gradients 1 and 2 come at 21 and 25): 47. Backward first: at 9 the
// queue is free and gradient 0 goes before value 2, to 13; gradient 1, made at 12, to 17; value 2
// to 21, gradient 2 from 24 to 28, when rank 0 is still at its second backward: 13 + 30 = 43. Least
// slack: after gradient 0 there is a way of 4 + 30, after value 2 one of 4 + 1 + 2 + 4 + 10: the
// same.
TEST(MessageOrder, GradientsThatOvertakeAValueSaveItsTransfer) {
  const TwoRanks two;
  EXPECT_EQ(two.time(two.by(MessageRule::FirstReady)), Nanoseconds{47});
  EXPECT_EQ(two.time(two.by(MessageRule::BackwardFirst)), Nanoseconds{43});
  EXPECT_EQ(two.time(two.by(MessageRule::LeastSlack)), Nanoseconds{43});
  EXPECT_EQ(write_schedule(two.by(MessageRule::BackwardFirst)),
            "0F0,0SEND_F0,0F1,0F2,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0SEND_F2,0B1,0RECV_B2,0B2,"
            "0OPTIMIZER_STEP\n"
            "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2,"
            "1OPTIMIZER_STEP\n");
}

/// Without SEND, RECV and REDUCE_GRAD.
Schedule without_messages(Schedule schedule) {
  for (std::vector<Cell>& row : schedule.rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action != nullptr && (is_transfer(action->op) || action->op == Op::ReduceGrad);
    });
  return schedule;
}

// Lengths are drawn anew, so the order is of times that have nothing to do with the costs.
TEST(MessageOrder, IsValidWhateverTheRuleAndTheQueues) {
  std::size_t checked = 0, changed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const testing::RandomProgram program = testing::random_program(seed);
    const StageGraph stages = stage_graph(program.costs);
    const Requirements needs{stages, microbatch_count(program.schedule)};
    if (!validate(program.schedule, needs, {.queues = Queues::None}).empty()) continue;
    std::mt19937_64 random(seed);
    std::vector<Nanoseconds> lengths(
        dependencies(program.schedule, stages, program.placement, {}).size());
    for (Nanoseconds& length : lengths) length = Nanoseconds{random() % 5};
    for (const MessageRule rule : kMessageRules)
      for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank}) {
        const Schedule ordered =
            with_message_order(program.schedule, stages, program.placement, lengths, queues, rule);
        EXPECT_EQ(without_messages(ordered), without_messages(program.schedule));
        for (const bool blocking : {false, true})
          for (const Queues judged : {Queues::Edge, Queues::Pair, Queues::Rank})
            EXPECT_THAT(validate(ordered, needs, {.queues = judged, .blocking = blocking}),
                        ::testing::IsEmpty())
                << "seed " << seed << "\n"
                << write_schedule(ordered);
        ++checked;
        changed += ordered != program.schedule;
      }
  }
  EXPECT_GT(checked, 500u);
  EXPECT_GT(changed, checked / 2);
}

}  // namespace
}  // namespace pfeife
