// Forward only: worked examples, what the judge accepts in which mode, and what nothing is left of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/estimate/memory.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/judge/validate.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/runnable.h"
#include "tests/schedules/timed.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

/// F of a rank's whole share of a microbatch, in ns: whole for up to four stages a rank.
constexpr std::int64_t kShare = 1000;

ScheduleSpec forward_point(std::size_t ranks, std::size_t microbatches,
                           std::size_t stages_per_rank = 1,
                           std::optional<std::size_t> loop_batch = {}) {
  return {.family = "forward",
          .ranks = ranks,
          .microbatches = microbatches,
          .stages_per_rank = stages_per_rank,
          .loop_batch = loop_batch};
}
StageCosts forward_costs(const ScheduleSpec& spec, Nanoseconds transfer = {}) {
  const Nanoseconds stage{kShare / static_cast<std::int64_t>(spec.stages_per_rank)};
  return without_backward(uniform_costs(spec.stages(), stage, stage, stage, transfer));
}
/// Step and latency in shares.
std::pair<double, double> step_and_latency(const ScheduleSpec& spec) {
  const Trace trace = timed(spec, forward_costs(spec));
  const auto shares = [](Nanoseconds time) {
    return static_cast<double>(time.count()) / static_cast<double>(kShare);
  };
  return {shares(step_time(trace)), shares(forward_latency(trace).value())};
}

// By an event loop over the rows, written apart from this program: F = 1 a rank, transfers 0.
TEST(ForwardOnly, WorkedExamplesHaveTheirStepsAndLatencies) {
  using Figures = std::pair<double, double>;
  EXPECT_EQ(step_and_latency(forward_point(2, 4)), (Figures{5, 2}));
  EXPECT_EQ(step_and_latency(forward_point(4, 4)), (Figures{7, 4}));
  EXPECT_EQ(step_and_latency(forward_point(2, 4, 2)), (Figures{4.5, 2}));
  EXPECT_EQ(step_and_latency(forward_point(4, 8, 2)), (Figures{9.5, 4}));
  // Breadth first: equally soon, but each microbatch takes longer.
  EXPECT_EQ(step_and_latency(forward_point(2, 4, 2, 4)), (Figures{4.5, 3}));
  EXPECT_EQ(step_and_latency(forward_point(4, 8, 2, 8)), (Figures{9.5, 6}));
}

// N + (D - 1) / V shares: the last rank begins after the F of one stage on each rank before it, and
// then never waits, if D divides N.
TEST(ForwardOnly, StepIsTheWorkOfARankAndTheWayOfTheFirstStages) {
  for (const std::size_t d : {1, 2, 3, 5})
    for (const std::size_t rounds : {1, 2, 3})
      for (const std::size_t v : {1, 2, 4}) {
        const std::size_t n = rounds * d;
        const auto [step, latency] = step_and_latency(forward_point(d, n, v));
        EXPECT_DOUBLE_EQ(
            step, static_cast<double>(n) + static_cast<double>(d - 1) / static_cast<double>(v));
        EXPECT_DOUBLE_EQ(latency, static_cast<double>(d));
        // A microbatch waits at each further stage of a rank until the other N - D are through.
        const auto [first_step, first_latency] = step_and_latency(forward_point(d, n, v, n));
        EXPECT_DOUBLE_EQ(first_step, step);
        EXPECT_DOUBLE_EQ(first_latency,
                         latency + static_cast<double>((n - d) * (v - 1)) / static_cast<double>(v));
      }
}

TEST(ForwardOnly, EveryPointRunsToItsEndAndIsRightOnceLowered) {
  for (const std::size_t d : {1, 2, 3, 4, 7})
    for (const std::size_t n : {1, 3, 8})
      for (const std::size_t v : {1, 2, 3})
        for (const std::size_t batch : {1, 2, 3, 8, 11}) {
          const ScheduleSpec spec = forward_point(d, n, v, batch);
          const Schedule rows = generate(spec);
          EXPECT_TRUE(stuck_cells(rows, spec.stages(), n).empty());
          EXPECT_EQ(placement_of(rows), placement_for(spec));
          const StageCosts costs = forward_costs(spec, Nanoseconds{100});
          EXPECT_TRUE(validate(rows, {stage_graph(costs), n, false}).empty());
          for (const TransferOrder order : {TransferOrder::Ready, TransferOrder::Torch}) {
            const Schedule lowered = lower(rows, costs, placement_for(spec), {.transfers = order});
            EXPECT_TRUE(validate(lowered, {stage_graph(costs), n}).empty())
                << d << " " << n << " " << v << " " << batch;
          }
        }
}

// Rank 1 of two: it receives a value (1 byte) for each F and has nothing else; rank 0 holds what it
// has not sent.
TEST(ForwardOnly, NothingStaysBehindAnF) {
  const ScheduleSpec spec = forward_point(2, 4);
  StageCosts costs = uniform_costs(2, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, {});
  for (StageCost& stage : costs.stages) {
    stage.saved = Bytes{1000}, stage.parameters = Bytes{10}, stage.gradients = Bytes{10};
    stage.optimizer_state = Bytes{20}, stage.unkept_forward = Bytes{7};
  }
  costs = without_backward(costs);
  const Placement placement = placement_for(spec);
  const Schedule lowered = lower(generate(spec), costs, placement);
  for (const std::size_t r : {0, 1}) {
    const MemoryCurve curve = memory(lowered, RankId{r}, costs, placement);
    EXPECT_EQ(curve.fixed, Bytes{10}) << "parameters alone";
    EXPECT_EQ(curve.steps.back().after, Bytes{10});
    // One value, what F needs of its own, and on its way perhaps one more.
    EXPECT_GE(curve.peak(), Bytes{10 + 7 + 1});
    EXPECT_LE(curve.peak(), Bytes{10 + 7 + 2});
  }
}

std::string judged(const std::string& text, Mode mode) {
  const Schedule schedule = read_schedule(text, "test");
  std::string said;
  for (const Violation& violation :
       validate(schedule, requirements_of(schedule, has_transfers(schedule), mode)))
    said += (said.empty() ? "" : "; ") + violation.message;
  return said;
}

TEST(ForwardOnly, RowsOfFAloneAreRightWhereTheModeIsForwardAndOnlyThere) {
  const std::string forward = "0F0,0F1\n1F0,1F1\n";
  EXPECT_EQ(judged(forward, Mode::Forward), "");
  EXPECT_MESSAGE(judged(forward, Mode::Train));
  const std::string trains = "0F0,0F1,0B0,0I1,0W1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(judged(trains, Mode::Train), "");
  EXPECT_MESSAGE(judged(trains, Mode::Forward));
  EXPECT_MESSAGE(judged("0F0,0OPTIMIZER_STEP\n", Mode::Forward));
  EXPECT_MESSAGE(judged("0F0,0F1\n1F0\n", Mode::Forward));
  EXPECT_EQ(judged("0F0,0SEND_F0\n1RECV_F0,1F0\n", Mode::Forward), "");
  EXPECT_MESSAGE(judged("0F0,0SEND_F0,0RECV_B0\n1RECV_F0,1F0,1SEND_B0\n", Mode::Forward));
}

TEST(ForwardOnly, TheToolTimesItAndSaysTheLatency) {
  const Schedule rows = generate(forward_point(2, 4, 2, 4));
  const tool::UnitCosts units{.forward = {0.5}, .mode = Mode::Forward};
  const tool::Timing timing = tool::time_schedule(rows, units, {}, {});
  EXPECT_EQ(step_time(timing.trace), nanoseconds_from_ms(4.5));
  EXPECT_THAT(tool::timing_text(timing), ::testing::HasSubstr("latency of a microbatch 3 ms"));
  EXPECT_EQ(tool::grid_text(read_schedule("0F0,0F1\n1F0,1F1\n", "test"), true, Mode::Forward),
            "        0           in flight  I to W\n"
            "rank 0  F0  F1  .   1          0\n"
            "rank 1  .   F0  F1  1          0\n");
  EXPECT_EQ(forward_latency(timed({.family = "gpipe", .ranks = 2, .microbatches = 2},
                                  uniform_costs(2, Nanoseconds{1}, {}, {}, {}))),
            std::nullopt);
}

TEST(ForwardOnly, TheSearchSetHasItOnlyWhereItIsNamed) {
  const std::vector<std::size_t> stages_per_rank{1, 2};
  for (const ScheduleSpec& spec : search_set(2, 8, stages_per_rank))
    EXPECT_NE(spec.family, "forward");
  std::vector<std::string> points;
  for (const ScheduleSpec& spec :
       search_set(2, 8, stages_per_rank, std::vector<std::string>{"forward"}))
    points.push_back(std::to_string(spec.stages_per_rank) + " " + knobs(spec));
  EXPECT_EQ(points,
            (std::vector<std::string>{"1 ", "2 loop_batch=2", "2 loop_batch=4", "2 loop_batch=8"}));
}

}  // namespace
}  // namespace pfeife
