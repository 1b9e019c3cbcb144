#include "planner/search/pool/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pfeife {
namespace {

using Ms = std::chrono::milliseconds;

Priced plan_of(const char* family, Ms estimate, std::int64_t bytes) {
  Priced plan;
  plan.spec.family = family;
  plan.estimate = estimate;
  plan.peak_memory = {Bytes{bytes}};
  return plan;
}

std::vector<std::string> families_of(const std::vector<Priced>& plans) {
  std::vector<std::string> families;
  for (const Priced& plan : plans) families.push_back(plan.spec.family);
  return families;
}

Claim claim_of(Ms time) {
  Claim claim;
  claim.bound = Bound{.time = time};
  claim.covered = {{.bound = *claim.bound}};
  return claim;
}

const std::vector<Bytes> kLimit{Bytes{100}};
using ::testing::ElementsAre;

// 9 ms with 90 B, 10 ms with 95 B, 11 ms with 40 B: the second is slower and fuller than the first.
TEST(Pool, OrdersPlansAndKeepsTheFrontWhateverTheOrderTheyCameIn) {
  Pool pool(kLimit);
  pool.add({plan_of("slow", Ms{11}, 40)});
  pool.add({plan_of("full", Ms{10}, 95), plan_of("fast", Ms{9}, 90)});
  EXPECT_THAT(families_of(pool.answer().all), ElementsAre("fast", "full", "slow"));
  EXPECT_THAT(families_of(pool.answer().front), ElementsAre("fast", "slow"));
  pool.keep(2);
  EXPECT_THAT(families_of(pool.answer().plans), ElementsAre("fast", "full"));
  pool.add({plan_of("later", Ms{9}, 90)});
  EXPECT_THAT(families_of(pool.answer().plans), ElementsAre("fast", "later", "full"));
}

TEST(Pool, KeepsTheLeastShortageUntilThereIsAPlan) {
  Pool pool(kLimit);
  for (const std::int64_t needed : {150, 120, 130})
    pool.add(Infeasible{.rank = RankId{0}, .needed = Bytes{needed}, .available = Bytes{100}});
  ASSERT_TRUE(pool.answer().infeasible);
  EXPECT_EQ(pool.answer().infeasible->lacking(), Bytes{20});
  pool.add({plan_of("fits", Ms{9}, 90)});
  EXPECT_FALSE(pool.answer().infeasible);
  pool.add(Infeasible{.rank = RankId{0}, .needed = Bytes{110}, .available = Bytes{100}});
  EXPECT_FALSE(pool.answer().infeasible);
}

TEST(Pool, NoStepOfTheHistoryHasABoundAboveTheClaim) {
  Pool pool(kLimit);
  pool.add({plan_of("fast", Ms{9}, 90)});
  pool.set_history({{.bound = Ms{7}}, {.bound = Ms{8}}});
  pool.claim(claim_of(Ms{8}));
  EXPECT_EQ(pool.answer().history[1].bound, Nanoseconds{Ms{8}});
  pool.rebound(Ms{6});
  EXPECT_EQ(pool.answer().bound->time, Nanoseconds{Ms{6}});
  for (const SearchStep& step : pool.answer().history) EXPECT_EQ(step.bound, Nanoseconds{Ms{6}});
}

TEST(Pool, ClaimsOfTwoClassesHoldTogetherForTheLowerBound) {
  EXPECT_EQ(joined(claim_of(Ms{8}), claim_of(Ms{5})).bound->time, Nanoseconds{Ms{5}});
  EXPECT_EQ(joined(claim_of(Ms{8}), claim_of(Ms{9})).covered.size(), 2u);
  EXPECT_FALSE(joined(claim_of(Ms{8}), Claim{}).bound);
  EXPECT_FALSE(joined(Claim{}, claim_of(Ms{8})).bound);
}

}  // namespace
}  // namespace pfeife
