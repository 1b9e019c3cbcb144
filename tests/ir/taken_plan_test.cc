// Which of several plans is taken: speed first, then memory.
#include "planner/ir/request/taken_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/ir/result/need.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

// 100,000 ns is the least of those that fit; 0.1 % of it are 100 ns, and 100,100 still count.
TEST(TakenPlan, OfThoseThatCountAsFastTheLeastFull) {
  std::vector<PlanMerits> plans{
      {ns(100'000), 0.9}, {ns(100'100), 0.3}, {ns(100'101), 0.1}, {ns(90'000), 1.1}};
  EXPECT_EQ(taken_plan(plans, {.as_fast = 0.001}), 1u);
  EXPECT_EQ(taken_plan(plans, {.as_fast = 0}), 0u);
  EXPECT_EQ(taken_plan(plans, {.as_fast = 0.01}), 2u);
  plans.push_back({ns(100'050), 0.3});
  EXPECT_EQ(taken_plan(plans, {.as_fast = 0.001}), 4u) << "as full, and faster";
  plans.push_back({ns(100'050), 0.3});
  EXPECT_EQ(taken_plan(plans, {.as_fast = 0.001}), 4u) << "the first of equals";
}

TEST(TakenPlan, WhereNothingFitsTheSameOfAll) {
  EXPECT_EQ(taken_plan({{ns(100'100), 1.2}, {ns(100'000), 1.5}, {ns(100'200), 1.1}}, {}), 0u);
}

// By its definition, plan by plan.
TEST(TakenPlan, NoOtherThatCountsAsFastIsLessFull) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<PlanMerits> plans(1 + random() % 8);
    for (PlanMerits& plan : plans)
      plan = {ns(1000 + static_cast<std::int64_t>(random() % 30)),
              static_cast<double>(random() % 12) / 10};
    const PlanMerits taken = plans[taken_plan(plans, {.as_fast = 0.01})];
    for (const PlanMerits& plan : plans) {
      if (plan.fullness > 1) continue;
      EXPECT_LE(taken.fullness, 1) << round;
      EXPECT_LE(taken.time.count() * 100, plan.time.count() * 101) << round;
      bool counts = true;
      for (const PlanMerits& other : plans)
        counts =
            counts && (other.fullness > 1 || plan.time.count() * 100 <= other.time.count() * 101);
      if (counts) {
        EXPECT_LE(taken.fullness, plan.fullness) << round;
      }
    }
  }
}

// 90,000 has too large a bubble; of the others 100,000 is fastest.
TEST(TakenPlan, NoBubbleIsAboveTheLargestAllowed) {
  std::vector<PlanMerits> plans{
      {ns(90'000), 0.2, 0.3}, {ns(100'000), 0.9, 0.25}, {ns(100'100), 0.3, 0.1}};
  const auto taken = [&](double as_fast, std::optional<double> max_bubble) {
    return taken_plan(plans, {.as_fast = as_fast, .max_bubble = max_bubble});
  };
  EXPECT_EQ(taken(0, {}), 0u);
  EXPECT_EQ(taken(0, 0.3), 0u);
  EXPECT_EQ(taken(0, 0.29), 1u);
  EXPECT_EQ(taken(0.001, 0.29), 2u) << "what counts as fast is said of those that are allowed";
  EXPECT_EQ(taken(0, 0.1), 2u);
  EXPECT_EQ(taken(0, 0.05), 2u) << "the nearest";
  plans[2].fullness = 1.1;
  EXPECT_EQ(taken(0, 0.05), 1u) << "of those that fit";
}

TEST(Fullness, IsTheFullestRanksShareOfItsLimit) {
  EXPECT_EQ(fullness({Bytes{3}, Bytes{3}}, {Bytes{4}, Bytes{12}}), 0.75);
  EXPECT_GT(fullness({Bytes{5}}, {Bytes{4}}), 1);
}

}  // namespace
}  // namespace pfeife
