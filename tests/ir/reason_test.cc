// What a reader is told of each kind of reason.
#include "planner/ir/result/reason.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

using std::chrono::milliseconds;

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

}  // namespace
}  // namespace pfeife
