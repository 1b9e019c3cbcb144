#include <gtest/gtest.h>

#include <random>

#include "planner/ir/trace/observed_run.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

ClockBound message(std::size_t from, std::size_t to, int sent, int received) {
  return {from, to, ns{sent}, ns{received}};
}

// Clock 1 shows 1000 more than clock 0. A message takes 30 there and 50 back:
// sent at 0: 100, received by clock 1: 1130, so x1 >= 100 - 1130 = -1030;
// sent by clock 1: 1200, received at 0: 250, so x1 <= 250 - 1200 = -950. Middle -990, error 40.
TEST(ClockOffsets, AreTheMiddleOfWhatMessagesBothWaysAllow) {
  std::optional<std::size_t> unbounded;
  const auto offsets =
      clock_offsets(2, std::vector{message(0, 1, 100, 1130), message(1, 0, 1200, 250)}, unbounded);
  ASSERT_TRUE(offsets);
  EXPECT_EQ(*offsets, (std::vector<ClockOffset>{{ns{0}, ns{0}}, {ns{-990}, ns{40}}}));
}

TEST(ClockOffsets, RefuseWhatNoClocksWouldAllow) {
  std::optional<std::size_t> unbounded;
  EXPECT_FALSE(
      clock_offsets(2, std::vector{message(0, 1, 100, 1130), message(1, 0, 1200, 160)}, unbounded));
  EXPECT_FALSE(unbounded);
}

TEST(ClockOffsets, NameAClockThatIsOnlyBoundedFromOneSide) {
  std::optional<std::size_t> unbounded;
  EXPECT_FALSE(clock_offsets(
      3, std::vector{message(0, 1, 0, 5), message(1, 0, 0, 5), message(1, 2, 0, 5)}, unbounded));
  EXPECT_EQ(unbounded, 2U);
}

/// Any run on clocks that are off by anything is given back within the stated error, and on the
/// clocks found no message arrives before it is sent.
TEST(ClockOffsets, FindTrueOffsetsWithinTheirErrorAndKeepCausality) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t clocks = 2 + random() % 4;
    std::vector<std::int64_t> ahead(clocks);
    for (std::size_t c = 1; c < clocks; ++c)
      ahead[c] = static_cast<std::int64_t>(random() % 2'000'001) - 1'000'000;
    std::vector<ClockBound> messages;
    for (std::size_t c = 0; c + 1 < clocks; ++c)
      for (int i = 0; i < 6; ++i)
        for (const bool forth : {true, false}) {
          const std::size_t from = forth ? c : c + 1, to = forth ? c + 1 : c;
          const auto sent = static_cast<std::int64_t>(random() % 100'000);
          const auto took = static_cast<std::int64_t>(random() % 500);
          messages.push_back({from, to, ns{sent + ahead[from]}, ns{sent + took + ahead[to]}});
        }
    std::optional<std::size_t> unbounded;
    const auto offsets = clock_offsets(clocks, messages, unbounded);
    ASSERT_TRUE(offsets);
    for (std::size_t c = 0; c < clocks; ++c) {
      const std::int64_t off = (*offsets)[c].offset.count() + ahead[c];
      EXPECT_LE(std::abs(off), (*offsets)[c].error.count());
    }
    for (const ClockBound& m : messages)
      EXPECT_LE(m.sent + (*offsets)[m.sender].offset, m.received + (*offsets)[m.receiver].offset);
  }
}

}  // namespace
}  // namespace pfeife
