// What planning came to, in words, and a plan beside others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/result/answer.h"
#include "planner/ir/result/contestant.h"
#include "planner/ir/result/figures.h"
#include "planner/ir/result/measured_pairs.h"
#include "planner/ir/result/reason.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;

Answer bounded() {
  Answer answer;
  answer.bound = Bound{.time = milliseconds{8}};
  answer.covered = {{.layers = 3, .listed = 2}};
  return answer;
}

TEST(Answer, WordsOfTheBoundNameWhatNoCertificateSpeaksOf) {
  Answer answer = bounded();
  const std::string certified = to_string(answer.covered);
  EXPECT_EQ(covered_text(answer), certified);
  EXPECT_EQ(plan_bound(answer)->uncertified, "");
  answer.uncertified.microbatch_sizes = {1, 4};
  EXPECT_EQ(covered_text(answer),
            certified +
                "; besides, without a certificate, the other microbatch sizes of the "
                "global batch: 1, 4");
  EXPECT_EQ(plan_bound(answer)->uncertified,
            "the other microbatch sizes of the global batch: 1, 4");
  EXPECT_EQ(answer.bound->uncertified, "") << "data until it is written";
}

TEST(Answer, WithoutABoundNothingIsCovered) {
  Answer answer = bounded();
  answer.uncertified.device_orders = true;
  answer.bound.reset();
  EXPECT_EQ(covered_text(answer), "");
  EXPECT_FALSE(plan_bound(answer));
}

TEST(Answer, UnfinishedSearchesSayWhatIsLeft) {
  EXPECT_EQ(to_string(Unfinished{Unfinished::What::OpenChoices, 3}),
            "unfinished: 3 of the choices that are open may be faster, but were searched with "
            "little effort alone");
  EXPECT_EQ(to_string(Unfinished{Unfinished::What::SharedLinks}),
            "unfinished: links bind, and the budget ended before all changes of the best plans "
            "were simulated; a larger plan.iterations goes on");
}

// 7 of 7 bytes on one rank, 8 of 7 on another.
TEST(Contestant, FitsWhereNoRankNeedsMoreThanItHas) {
  Contestant plan;
  plan.need.allocated = {Bytes{5}, Bytes{7}};
  plan.need.limit = {Bytes{7}, Bytes{7}};
  EXPECT_TRUE(plan.fits());
  plan.need.allocated[0] = Bytes{8};
  EXPECT_FALSE(plan.fits());
  plan.need.allocated.clear();
  plan.reason = "nothing fits";
  EXPECT_FALSE(plan.fits()) << "there is no such plan";
  try {
    plan.priced();
    FAIL();
  } catch (const RuntimeFault& fault) {
    EXPECT_STREQ(fault.what(), "nothing fits");
  }
}

// What a reader is told of each kind of reason.

TEST(Reasons, SayHowMuchSlowerAndThanWhat) {
  Reason slower{.why = Why::Slower, .slower = milliseconds{3}};
  EXPECT_EQ(to_string(slower), "3 ms slower");
  slower.beside_least = true;
  EXPECT_EQ(to_string(slower), "3 ms slower than the least estimate");
  slower.slower = milliseconds{0};
  EXPECT_EQ(to_string(slower), "as fast");
  EXPECT_EQ(to_string({.why = Why::Slower, .slower = milliseconds{3}, .by = SelectBy::Simulate}),
            "3 ms slower simulated");
  EXPECT_EQ(to_string({.why = Why::Slower, .slower = milliseconds{3}, .by = SelectBy::P95}),
            "3 ms slower by p95");
  EXPECT_EQ(to_string({.why = Why::Slower}), "slower") << "by how much is not known";
}

TEST(Reasons, SayWhatAPlanThatCountsAsFastNeedsMore) {
  Reason fuller{.why = Why::Fuller, .slower = milliseconds{0}, .lacking = 3 * kGiB};
  EXPECT_EQ(to_string(fuller), "as fast, with 3 GiB more");
  fuller.slower = milliseconds{-2};
  EXPECT_EQ(to_string(fuller), "2 ms faster, with 3 GiB more");
  fuller.lacking = Bytes{0};  // another device is the fullest
  EXPECT_EQ(to_string(fuller), "2 ms faster, with less room");
}

// 12.35 ms is not proven where 12.347999 is.
TEST(Reasons, NameTheBoundThatRulesOut) {
  Reason ruled_out{.why = Why::RuledOut};
  EXPECT_EQ(to_string(ruled_out), "its bound is not below the plan's time");
  EXPECT_EQ(to_string(ruled_out, Nanoseconds{12'347'999}),
            "its bound, 12.34 ms, is not below the plan's time");
  EXPECT_EQ(to_string(ruled_out, {}, true), "their bounds are not below the plan's time");
  ruled_out.beside_least = true;
  EXPECT_EQ(to_string(ruled_out, Nanoseconds{1}), "its bound is not below the least estimate");
  EXPECT_EQ(to_string(ruled_out, {}, true), "their bounds are not below the least estimate");
}

TEST(Reasons, NameTheRankThatLacksMemory) {
  Reason lacks{.why = Why::LacksMemory, .rank = RankId{2}, .lacking = 3 * kGiB};
  EXPECT_EQ(to_string(lacks), "rank 2 lacks 3 GiB");
  lacks.may_yet_fit = true;
  EXPECT_EQ(to_string(lacks), "rank 2 lacks 3 GiB in the best case found");
  EXPECT_EQ(to_string({.why = Why::NothingFound}), "no cuts found that fit");
  EXPECT_EQ(to_string({.why = Why::Impossible, .words = "too few layers"}), "too few layers");
  EXPECT_EQ(to_string(Reason{}), "") << "of the plan itself";
}

Event task(TaskKind kind, int rank, int start, int end) {
  Event event;
  event.kind = kind;
  event.rank = event.peer = RankId{rank};
  event.start = event.posted = Nanoseconds{start};
  event.end = Nanoseconds{end};
  return event;
}

/// Rank 0 computes 0-10 and 40-60 and steps its optimizer until 63, rank 1 computes 12-40 and steps
/// until 70: the step takes 70, without optimizers 60, and no rank is at work for longer than 63.
Trace example_trace() {
  Trace trace;
  trace.ranks = 3;  // the last one has nothing to do
  trace.events = {task(TaskKind::Compute, 0, 0, 10),    task(TaskKind::Transfer, 0, 10, 12),
                  task(TaskKind::Compute, 1, 12, 40),   task(TaskKind::Compute, 0, 40, 60),
                  task(TaskKind::Optimizer, 1, 60, 70), task(TaskKind::Optimizer, 0, 60, 63)};
  return trace;
}

TEST(Figures, SpanIsTheLongestTimeOfARankFromItsFirstActionToItsLast) {
  EXPECT_EQ(step_time(example_trace()), Nanoseconds{70});
  EXPECT_EQ(span(example_trace()), Nanoseconds{63});
  EXPECT_EQ(span({}), Nanoseconds{0});
}

TEST(Figures, WithoutTheOptimizerAStepEndsWithTheLastBackward) {
  EXPECT_EQ(step_without_optimizer(example_trace()), Nanoseconds{60});
  EXPECT_EQ(step_without_optimizer({}), Nanoseconds{0});
}

PlanRecord measured(const std::string& name, std::int64_t predicted_ms,
                    const std::vector<std::int64_t>& rounds_ms) {
  PlanRecord plan;
  plan.row.plan = name;
  plan.row.estimate = Nanoseconds{predicted_ms * 1'000'000};
  plan.measured = MeasuredRun{.interval_goal = 0.02};
  std::vector<std::int64_t> sorted = rounds_ms;
  std::ranges::sort(sorted);
  plan.row.measure = Nanoseconds{sorted[(sorted.size() - 1) / 2] * 1'000'000};
  for (const std::int64_t ms : rounds_ms)
    plan.measured->rounds.push_back(Nanoseconds{ms * 1'000'000});
  return plan;
}

// Every round of b takes 5 % longer than that of a, whatever the machine does meanwhile; c is as
// fast as a in the middle of rounds that differ by a tenth either way.
TEST(MeasuredPairs, AreToldApartWhereTheRoundsOfBothSayTheSame) {
  CaseRecord record;
  record.plans = {measured("b", 90, {105, 210, 105, 210, 105, 210}),
                  measured("a", 100, {100, 200, 100, 200, 100, 200}),
                  measured("c", 110, {110, 180, 110, 180, 110, 180})};
  const std::vector<MeasuredPair> pairs = measured_pairs(record);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].faster, 1u);
  EXPECT_EQ(pairs[0].slower, 0u);
  EXPECT_TRUE(pairs[0].apart());
  EXPECT_DOUBLE_EQ(pairs[0].longer.median, 105.0 / 100 - 1);
  EXPECT_DOUBLE_EQ(pairs[0].longer.low, pairs[0].longer.high);
  EXPECT_FALSE(pairs[0].predicted) << "b was predicted to be faster";
  for (std::size_t p = 1; p < 3; ++p) EXPECT_FALSE(pairs[p].apart());
}

TEST(MeasuredPairs, TakeSixRoundsOfBoth) {
  CaseRecord record;
  record.plans = {measured("a", 1, {1, 1, 1, 1, 1}), measured("b", 1, {2, 2, 2, 2, 2})};
  EXPECT_TRUE(measured_pairs(record).empty());
  record.plans = {measured("a", 1, {1, 1, 1, 1, 1, 1}), measured("b", 1, {2, 2, 2, 2, 2, 2, 2})};
  EXPECT_TRUE(measured_pairs(record).empty());
  record.plans[1].measured->rounds.pop_back();
  ASSERT_EQ(measured_pairs(record).size(), 1u);
  EXPECT_DOUBLE_EQ(measured_pairs(record)[0].longer.median, 1);
  record.plans[1].measured.reset();
  EXPECT_TRUE(measured_pairs(record).empty());
}

// The interval of six rounds is all of them: 100 to 103, half of it 1.5 of the median 101.
TEST(MeasuredRun, MissesItsGoalWithAWiderIntervalOrWithoutOne) {
  MeasuredRun run = *measured("a", 1, {100, 101, 101, 101, 101, 103}).measured;
  EXPECT_FALSE(misses_goal(run));
  run.interval_goal = 1.5 / 101;
  EXPECT_TRUE(misses_goal(run));
  run.interval_goal = 0.02;
  run.rounds.pop_back();
  EXPECT_TRUE(misses_goal(run)) << "five rounds know nothing with 95 %";
  run.rounds.resize(1);
  EXPECT_FALSE(misses_goal(run)) << "no rounds were asked for";
}

}  // namespace
}  // namespace pfeife
