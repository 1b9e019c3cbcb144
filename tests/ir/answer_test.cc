// What planning came to, in words, and a plan beside others.
#include "planner/ir/result/answer.h"

#include <gtest/gtest.h>

#include "planner/ir/basics/error.h"
#include "planner/ir/result/contestant.h"

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

}  // namespace
}  // namespace pfeife
