#include "planner/ir/result/measured_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace pfeife {
namespace {

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
