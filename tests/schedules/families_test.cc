// The table of families: what is accepted, how the rest is refused, and the grid a search tries.
#include "planner/schedules/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/ir/basics/error.h"
#include "planner/schedules/runnable.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

std::string error_of_spec(const ScheduleSpec& spec) {
  return pfeife::message_of([&] { generate(spec); });
}

TEST(Families, UnknownNamesGetTheNearestSpelling) {
  EXPECT_MESSAGE(error_of_spec({.family = "gpip"}));
  EXPECT_MESSAGE(error_of_spec({.family = "interleaved1f1b"}));
}

TEST(Families, PointsOutsideAreRefusedWithTheNearestValidOne) {
  EXPECT_MESSAGE(
      error_of_spec({.family = "gpipe", .ranks = 2, .microbatches = 4, .stages_per_rank = 2}));
  EXPECT_MESSAGE(error_of_spec(
      {.family = "interleaved_1f1b", .ranks = 4, .microbatches = 9, .stages_per_rank = 2}));
  EXPECT_MESSAGE(error_of_spec({.family = "looped_bfs", .ranks = 4, .microbatches = 9}));
  EXPECT_MESSAGE(error_of_spec(
      {.family = "looped", .ranks = 8, .microbatches = 10, .stages_per_rank = 2, .prefetch = {5}}));
  EXPECT_MESSAGE(error_of_spec({.family = "gpipe", .ranks = 0}));
  EXPECT_MESSAGE(error_of_spec({.family = "gpipe", .ranks = 2, .loop_batch = 2}));
  EXPECT_MESSAGE(error_of_spec({.family = "gpipe", .ranks = 2, .prefetch = {1}}));
  EXPECT_MESSAGE(error_of_spec({.family = "1f1b", .ranks = 3, .prefetch = {1, 1}}));
  EXPECT_MESSAGE(error_of_spec(
      {.family = "gpipe", .ranks = std::size_t{1} << 40, .microbatches = std::size_t{1} << 40}));
}

/// Calls `visit` with every accepted point of D <= 8, N <= 12, V <= 4 of every family without its
/// knobs.
template <class Visitor>
void for_each_accepted(Visitor&& visit) {
  for (const Family& known : families())
    for (std::size_t d = 1; d <= 8; ++d)
      for (std::size_t n = 1; n <= 12; ++n)
        for (std::size_t v = 1; v <= 4; ++v) {
          const ScheduleSpec spec{
              .family = known.name, .ranks = d, .microbatches = n, .stages_per_rank = v};
          if (!refusal(spec)) visit(spec);
        }
}

TEST(Families, PlaceEveryStageWhereItsActionsAre) {
  for_each_accepted([](const ScheduleSpec& spec) {
    EXPECT_EQ(placement_of(generate(spec)), placement_for(spec)) << spec.family;
  });
}

TEST(Families, EveryAcceptedPointRunsToItsEnd) {
  for_each_accepted([](const ScheduleSpec& spec) {
    EXPECT_EQ(describe(stuck_cells(generate(spec), spec.stages(), spec.microbatches)), "")
        << spec.family << " " << spec.ranks << " " << spec.microbatches << " "
        << spec.stages_per_rank;
  });
}

TEST(Families, NearestValidPointsAreValid) {
  for (const Family& known : families())
    for (std::size_t d = 1; d <= 8; ++d)
      for (std::size_t n = 1; n <= 20; ++n)
        for (std::size_t v = 1; v <= 3; ++v) {
          ScheduleSpec spec{
              .family = known.name, .ranks = d, .microbatches = n, .stages_per_rank = v};
          for (int round = 0; round < 2; ++round)  // first V, then N
            if (const auto refused = refusal(spec)) {
              EXPECT_TRUE(refused->stages_per_rank || refused->microbatches) << known.name;
              spec.stages_per_rank = refused->stages_per_rank.value_or(spec.stages_per_rank);
              spec.microbatches = refused->microbatches.value_or(spec.microbatches);
            }
          EXPECT_FALSE(refusal(spec).has_value()) << known.name << " " << d << " " << n << " " << v;
        }
}

TEST(SearchSet, TwoRanksFourMicrobatchesUpToTwoLoops) {
  const std::vector<std::size_t> stages_per_rank{1, 2};
  const std::vector<std::string> names{"gpipe", "1f1b", "looped", "interleaved_1f1b"};
  std::vector<std::string> points;
  for (const ScheduleSpec& spec : search_set(2, 4, stages_per_rank, names))
    points.push_back(spec.family + " " + std::to_string(spec.stages_per_rank) + " " + knobs(spec));
  EXPECT_EQ(points, (std::vector<std::string>{
                        "gpipe 1 ", "1f1b 1 prefetch=0", "1f1b 1 prefetch=1",
                        "looped 2 loop_batch=2, prefetch=0", "looped 2 loop_batch=2, prefetch=1",
                        "looped 2 loop_batch=4, prefetch=0", "looped 2 loop_batch=4, prefetch=1",
                        "interleaved_1f1b 2 "}));
}

TEST(SearchSet, HoldsOnlyAcceptedPointsOfTheWantedSize) {
  const std::vector<std::size_t> stages_per_rank{1, 2, 3};
  const auto set = search_set(8, 10, stages_per_rank);
  EXPECT_GT(set.size(), 30u);
  for (const ScheduleSpec& spec : set) {
    EXPECT_EQ(refusal(spec), std::nullopt);
    EXPECT_EQ(spec.ranks, 8u);
    EXPECT_EQ(spec.microbatches, 10u);
  }
}

}  // namespace
}  // namespace pfeife
