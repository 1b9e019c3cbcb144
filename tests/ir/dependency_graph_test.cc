#include "planner/ir/schedule/dependency_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "planner/cost/estimate/estimator.h"
#include "planner/ir/schedule/lower.h"
#include "planner/ir/trace/trace.h"
#include "planner/schedules/families.h"
#include "tests/ir/rows.h"

namespace pfeife {
namespace {

using testing::rows;
using ns = Nanoseconds;

Trace run(const Schedule& schedule, const StageCosts& costs, Semantics semantics = {}) {
  const Placement placement = *placement_of(schedule);
  const auto outcome =
      estimate(dependencies(schedule, stage_graph(costs), placement, semantics), costs);
  if (const auto* deadlock = std::get_if<Deadlock>(&outcome))
    throw std::runtime_error(std::to_string(deadlock->blocked.size()) + " tasks blocked");
  return std::get<Trace>(outcome);
}

const Event& find(const Trace& trace, const std::string& action) {
  for (const Event& event : trace.events)
    if (to_string(event.cell) == action) return event;
  throw std::runtime_error("no " + action);
}

/// Pfeife (ICML 2025), Fig. 2: two ranks, two microbatches, F 15 / 10, B 30 / 20, transfer 1.
struct Figure2 {
  Schedule schedule = rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                            "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1"});
  StageCosts costs = [] {
    StageCosts c = uniform_costs(2, ns{15}, ns{30}, ns{0}, ns{1});
    c.stages[1].forward = ns{10};
    c.stages[1].backward_input = ns{20};
    return c;
  }();
};

TEST(DependencyGraph, GivesEveryStartOfPfeifesFigure2) {
  const Figure2 figure;
  const Trace trace = run(figure.schedule, figure.costs);
  std::ifstream file(PFEIFE_SOURCE_DIR "/tests/data/oracles/pfeife_fig2.csv");
  std::string line;
  std::getline(file, line);
  int checked = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string action, rank, start, duration;
    std::getline(fields, action, ',');
    std::getline(fields, rank, ',');
    std::getline(fields, start, ',');
    std::getline(fields, duration, ',');
    const Event& event = find(trace, action);
    EXPECT_EQ(event.start.count(), std::stoll(start)) << action;
    EXPECT_EQ((event.end - event.start).count(), std::stoll(duration)) << action;
    EXPECT_EQ(event.rank.value, std::stoi(rank)) << action;
    ++checked;
  }
  EXPECT_EQ(checked, 12);
  EXPECT_EQ(step_time(trace), ns{122});
}

TEST(DependencyGraph, SameFigureIn1F1BOrderTakes107) {
  const Figure2 figure;
  const Schedule schedule = rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                                  "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1"});
  EXPECT_EQ(step_time(run(schedule, figure.costs)), ns{107});
}

TEST(DependencyGraph, SecondTransferWaitsForTheFirstInAQueueButNotWithout) {
  // F 1 ns, transfers 10 ns: free links overlap them (end 2 + 10), a queue does not (1 + 10 + 10).
  const Schedule schedule = rows({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F0 1RECV_F1 1F0 1F1"});
  const StageCosts costs = uniform_costs(2, ns{1}, ns{0}, ns{0}, ns{10});
  EXPECT_EQ(find(run(schedule, costs), "0SEND_F1").end, ns{12});
  for (const Queues queues : {Queues::Edge, Queues::Pair, Queues::Rank}) {
    const Trace trace = run(schedule, costs, {.queues = queues});
    EXPECT_EQ(find(trace, "0SEND_F1").start, ns{11}) << to_string(queues);
    EXPECT_EQ(find(trace, "0SEND_F1").posted, ns{2}) << to_string(queues);
  }
}

TEST(DependencyGraph, QueuesDifferInWhatTheyOrder) {
  // Three ranks. Rank 1 first sends 1F0 on to rank 2, then a gradient back to rank 0; the forward
  // transfer is held up.
  const Schedule schedule =
      rows({"0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0",
            "2RECV_F0 2F0 2B0 2SEND_B0"});
  const StageCosts costs = uniform_costs(3, ns{1}, ns{2}, ns{0}, ns{5});
  // One chain: 3 F + 3 B + 4 transfers whatever the queues.
  for (const Queues queues : {Queues::None, Queues::Edge, Queues::Pair, Queues::Rank})
    EXPECT_EQ(step_time(run(schedule, costs, {.queues = queues})), ns{3 + 6 + 20});
}

TEST(DependencyGraph, PairQueueOrdersBothDirectionsAndEdgeQueueDoesNot) {
  // Rank 0 sends microbatch 1 forward and takes the gradient of microbatch 0 back at the same time:
  // separate queues per direction overlap them, one queue per pair does not.
  const Schedule schedule = rows({"0F0 0SEND_F0 0F1 0F2 0SEND_F1 0SEND_F2 0RECV_B0 0B0",
                                  "1RECV_F0 1F0 1B0 1RECV_F1 1RECV_F2 1SEND_B0 1F1 1F2"});
  const StageCosts costs = uniform_costs(2, ns{1}, ns{1}, ns{0}, ns{10});
  // 0SEND_F0 1-11, 1F0 11-12, 1B0 12-13; 0SEND_F1 after F0's transfer: 11-21, F2 21-31; the
  // gradient is ready at 13.
  EXPECT_EQ(find(run(schedule, costs, {.queues = Queues::Edge}), "1SEND_B0").start, ns{13});
  EXPECT_EQ(find(run(schedule, costs, {.queues = Queues::Pair}), "1SEND_B0").start, ns{31});
  EXPECT_EQ(find(run(schedule, costs, {.queues = Queues::Rank}), "1SEND_B0").start, ns{31});
}

TEST(DependencyGraph, DifferentOrderOnTheTwoSidesIsADeadlockInAQueue) {
  const Schedule schedule = rows({"0F0 0F1 0SEND_F0 0SEND_F1", "1RECV_F1 1RECV_F0 1F0 1F1"});
  const StageCosts costs = uniform_costs(2, ns{1}, ns{1}, ns{0}, ns{1});
  const auto blocked = [&](Semantics semantics) {
    const auto outcome = estimate(
        dependencies(schedule, stage_graph(costs), *placement_of(schedule), semantics), costs);
    const auto* deadlock = std::get_if<Deadlock>(&outcome);
    return deadlock ? deadlock->blocked.size() : 0;
  };
  EXPECT_EQ(blocked({.queues = Queues::None}), 0U);
  EXPECT_EQ(blocked({.queues = Queues::Edge}), 4U);  // both transfers, both forwards on rank 1
  EXPECT_EQ(blocked({.queues = Queues::None, .blocking = true}), 4U);
}

TEST(DependencyGraph, BlockingSendHoldsItsRankUntilTheReceiverComes) {
  const Schedule schedule = rows({"0F0 0SEND_F0 0F1 0SEND_F1", "1RECV_F0 1F0 1RECV_F1 1F1"});
  StageCosts costs = uniform_costs(2, ns{1}, ns{0}, ns{0}, ns{2});
  costs.stages[1].forward = ns{10};
  const Trace trace = run(schedule, costs, {.blocking = true});
  // F0 0-1, transfer 1-3, F1 on rank 0 3-4 while 1F0 runs 3-13; the second transfer needs both:
  // 13-15.
  EXPECT_EQ(find(trace, "0F1").start, ns{3});
  EXPECT_EQ(find(trace, "0SEND_F1").start, ns{13});
  EXPECT_EQ(step_time(trace), ns{25});
}

TEST(DependencyGraph, ReductionOfTiedStagesWaitsForBothAndOptimizerForIt) {
  const Schedule schedule = rows({"0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0OPTIMIZER_STEP",
                                  "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1OPTIMIZER_STEP"});
  StageCosts costs = uniform_costs(2, ns{10}, ns{20}, ns{0}, ns{1});
  costs.reductions.push_back({{StageId{0}, StageId{1}}, Bytes{8}, ns{7}});
  costs.stages[0].optimizer = ns{3};
  costs.stages[1].optimizer = ns{4};
  const Trace trace = run(schedule, costs);
  // 10 + 1 + 10 + 20 + 1 + 20 = 62 is the end of 0B0.
  const Event& reduction = trace.events.back();
  ASSERT_EQ(reduction.kind, TaskKind::Reduction);
  EXPECT_THAT(reduction.parties, ::testing::ElementsAre(RankId{0}, RankId{1}));
  EXPECT_EQ(reduction.start, ns{62});
  EXPECT_EQ(find(trace, "0OPTIMIZER_STEP").start, ns{69});
  EXPECT_EQ(find(trace, "1OPTIMIZER_STEP").end, ns{73});
  const Attribution on1 = attribution(trace, RankId{1});
  EXPECT_EQ(on1.total(), step_time(trace));
  EXPECT_EQ(on1.reduction, ns{7});
  EXPECT_EQ(on1.optimizer, ns{4});
  EXPECT_EQ(on1.compute, ns{30});
  EXPECT_EQ(on1.exposed_transfer, ns{1});
  EXPECT_EQ(on1.dependency_wait,
            ns{10 + 21});  // 0F0 in front; 1SEND_B0 and 0B0 before the reduction
}

// Every optimizer step waits for a number of all gradients: the last is that of 0B0, at 62.
TEST(DependencyGraph, NoOptimizerStepsBeforeTheNormOfAllGradients) {
  const Schedule schedule = rows({"0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_NORM 0OPTIMIZER_STEP",
                                  "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_NORM 1OPTIMIZER_STEP"});
  StageCosts costs = uniform_costs(2, ns{10}, ns{20}, ns{0}, ns{1});
  costs.norm = ns{5};
  costs.stages[0].optimizer = ns{3};
  costs.stages[1].optimizer = ns{4};
  for (const bool blocking : {false, true}) {
    const Trace trace = run(schedule, costs, {.blocking = blocking});
    const Event& norm = find(trace, "0REDUCE_NORM");
    EXPECT_THAT(norm.parties, ::testing::ElementsAre(RankId{0}, RankId{1}));
    EXPECT_EQ(norm.start, ns{62});
    EXPECT_EQ(find(trace, "0OPTIMIZER_STEP").start, ns{67});
    EXPECT_EQ(find(trace, "1OPTIMIZER_STEP").end, ns{71});
    const Attribution on1 = attribution(trace, RankId{1});
    EXPECT_EQ(on1.reduction, ns{5});
    EXPECT_EQ(on1.total(), step_time(trace));
  }
}

// The norm is of reduced gradients: 62 + 7, then 5.
TEST(DependencyGraph, TheNormWaitsForReductions) {
  const Schedule schedule =
      rows({"0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0REDUCE_NORM 0OPTIMIZER_STEP",
            "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1REDUCE_NORM 1OPTIMIZER_STEP"});
  StageCosts costs = uniform_costs(2, ns{10}, ns{20}, ns{0}, ns{1});
  costs.reductions.push_back({{StageId{0}, StageId{1}}, Bytes{8}, ns{7}});
  costs.norm = ns{5};
  EXPECT_EQ(find(run(schedule, costs), "1OPTIMIZER_STEP").start, ns{62 + 7 + 5});
}

// Rank 1 made its gradient at 31 and sent 1B0, [31, 32). Where reductions block it stands at
// REDUCE_GRAD until 69, and 2F0 comes after that, though nothing else keeps it.
TEST(DependencyGraph, ABlockingReductionHoldsItsRanks) {
  const Schedule schedule = rows(
      {"0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD", "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 2F0 2B0"});
  StageCosts costs = uniform_costs(3, ns{10}, ns{20}, ns{0}, ns{1});
  costs.pairs.pop_back();  // stage 2 reads nothing
  costs.reductions.push_back({{StageId{0}, StageId{1}}, Bytes{8}, ns{7}});
  EXPECT_EQ(find(run(schedule, costs), "2F0").start, ns{10 + 1 + 10 + 20});
  EXPECT_EQ(find(run(schedule, costs, {.blocking = true}), "2F0").start, ns{62 + 7});
}

// 0 and 1 share a parameter, 2 and 3 another, 1 and 3 a third: all four wait for one another.
TEST(DependencyGraph, StagesThatAreTiedThroughOthersReduceTogether) {
  StageCosts costs = uniform_costs(4, ns{10}, ns{20}, ns{0}, ns{1});
  costs.reductions = {{{StageId{0}, StageId{1}}, Bytes{8}, ns{7}},
                      {{StageId{2}, StageId{3}}, Bytes{8}, ns{5}},
                      {{StageId{1}, StageId{3}}, Bytes{8}, ns{3}}};
  const ScheduleSpec spec{.family = "gpipe", .ranks = 4, .microbatches = 1};
  const Trace trace = run(lower(generate(spec), costs, placement_for(spec)), costs);
  std::vector<Event> reductions;
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Reduction) reductions.push_back(event);
  ASSERT_EQ(reductions.size(), 1U);
  EXPECT_THAT(reductions[0].parties,
              ::testing::ElementsAre(RankId{0}, RankId{1}, RankId{2}, RankId{3}));
  // Four forwards, four backwards and six transfers in a row.
  EXPECT_EQ(reductions[0].start, ns{4 * 10 + 4 * 20 + 6});
  EXPECT_EQ(reductions[0].end - reductions[0].start, ns{7 + 5 + 3});
}

TEST(DependencyGraph, AStageThatIsNotTiedReducesNothing) {
  const Schedule schedule =
      rows({"0F0 1F0 1SEND_F0 1RECV_B0 1B0 0B0 0REDUCE_GRAD 1REDUCE_GRAD 0OPTIMIZER_STEP",
            "2RECV_F0 2F0 2B0 2SEND_B0 2REDUCE_GRAD"});
  StageCosts costs = uniform_costs(3, ns{10}, ns{20}, ns{0}, ns{1});
  costs.reductions.push_back({{StageId{1}, StageId{2}}, Bytes{8}, ns{7}});
  const Trace trace = run(schedule, costs);
  const Event& reduction = trace.events.back();
  ASSERT_EQ(reduction.kind, TaskKind::Reduction);
  EXPECT_EQ(std::ranges::count(trace.events, TaskKind::Reduction, &Event::kind), 1);
  EXPECT_THAT(reduction.parties, ::testing::ElementsAre(RankId{0}, RankId{1}));
  EXPECT_EQ(reduction.start, ns{3 * 10 + 2 * 20 + 2});  // when 1B0 is done, beside 0B0
  EXPECT_EQ(find(trace, "0OPTIMIZER_STEP").start, ns{3 * 10 + 3 * 20 + 2});  // waits for nobody
}

// F and B of two stages, a transfer each way, two steps; overlaps of stages, whichever the
// microbatches.
TEST(DependencyGraph, AskForOneDurationAStageAndNotOneAMicrobatch) {
  const auto slots = [](const char* family, std::size_t stages_per_rank, std::size_t microbatches) {
    const ScheduleSpec spec{.family = family,
                            .ranks = 2,
                            .microbatches = microbatches,
                            .stages_per_rank = stages_per_rank};
    const StageCosts costs = uniform_costs(spec.stages(), ns{10}, ns{20}, ns{5}, ns{1});
    return dependencies(lower(generate(spec), costs, placement_for(spec)), stage_graph(costs),
                        placement_for(spec), {})
        .slots.size();
  };
  EXPECT_EQ(slots("1f1b", 1, 2), 8U);
  EXPECT_EQ(slots("1f1b", 1, 9), 8U);
  EXPECT_EQ(slots("dualpipev", 2, 20), slots("dualpipev", 2, 40));
}

TEST(DependencyGraph, OverlapStartsWhenAllInputsAreThereAndLastsTheSumTimesTheFactor) {
  const Schedule schedule =
      rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
            "1RECV_F0 1F0 1RECV_F1 (1F1;1B0)OVERLAP_F_B 1SEND_B0 1B1 1SEND_B1"});
  StageCosts costs = uniform_costs(2, ns{10}, ns{20}, ns{0}, ns{1});
  costs.overlap_factor = 0.9;
  const Trace trace = run(schedule, costs);
  // 1F0 11-21, 1F1's input at 21: overlap 21 to 21 + 27.
  EXPECT_EQ(find(trace, "(1F1;1B0)OVERLAP_F_B").start, ns{21});
  EXPECT_EQ(find(trace, "(1F1;1B0)OVERLAP_F_B").end, ns{48});
}

TEST(DependencyGraph, SkipTransferIsAnInputOfItsReader) {
  const Schedule schedule = rows({"0F0 0SEND_F0 0SKIP_SEND_F0>2 0RECV_B0 0SKIP_RECV_B0<2 0B0",
                                  "1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0",
                                  "2SKIP_RECV_F0<0 2RECV_F0 2F0 2B0 2SEND_B0 2SKIP_SEND_B0>0"});
  StageCosts costs = uniform_costs(3, ns{1}, ns{1}, ns{0}, ns{1});
  costs.pairs.insert(costs.pairs.begin() + 1,
                     {StageId{0}, StageId{2}, Bytes{1}, Bytes{1}, ns{100}, ns{200}});
  const Trace trace = run(schedule, costs);
  EXPECT_EQ(find(trace, "2F0").start, ns{101});
  EXPECT_EQ(find(trace, "0B0").start, ns{103 + 200});
}

}  // namespace
}  // namespace pfeife
