// When runs of annealing begin, as more and more effort is spent.
#include <gtest/gtest.h>

#include <random>

#include "planner/search/cuts/local_search.h"

namespace pfeife {
namespace {

using Runs = std::vector<AnnealingRun>;

// 300, 300 + 600 = 900, 900 + 1200 = 2100, 2100 + 2400 = 4500 batches.
TEST(AnnealingRuns, AreOfDoublingLengthAndBeginWhenThereIsEnoughForAll) {
  EXPECT_EQ(annealing_runs(0, 1), (Runs{{0, 300}}));
  EXPECT_EQ(annealing_runs(0, 899), (Runs{{0, 300}}));
  EXPECT_EQ(annealing_runs(0, 900), (Runs{{0, 300}, {1, 600}}));
  EXPECT_EQ(annealing_runs(0, 4499), (Runs{{0, 300}, {1, 600}, {2, 1200}}));
  EXPECT_EQ(annealing_runs(900, 2099), Runs{});
  EXPECT_EQ(annealing_runs(899, 4500), (Runs{{1, 600}, {2, 1200}, {3, 2400}}));
}

// Otherwise a search in many spans would be another than one in few.
TEST(AnnealingRuns, OfSpansAreThoseOfOneSpan) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Runs runs;
    std::size_t spent = 0;
    for (int span = 0; span < 20; ++span) {
      const std::size_t until = spent + 1 + random() % 2000;
      for (const AnnealingRun& run : annealing_runs(spent, until)) runs.push_back(run);
      spent = until;
    }
    EXPECT_EQ(runs, annealing_runs(0, spent));
  }
}

}  // namespace
}  // namespace pfeife
