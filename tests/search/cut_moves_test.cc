// What annealing tries: legal cuts, all of them in the end, and rows that leave the stages between
// their cuts as they are.
#include "planner/search/cuts/cut_moves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

std::size_t count_of_cuts(std::int32_t last, std::size_t stages) {
  std::size_t count = 1;  // last - 1 over stages - 1
  for (std::size_t k = 1; k < stages; ++k) count = count * (static_cast<std::size_t>(last) - k) / k;
  return count;
}

TEST(CutMoves, AreLegalAndLeadFromAnyCutsToAllOthers) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const Layers layers = random_layers(random, {.layers = 7 + random() % 3});
    const std::size_t ranks = 1 + random() % 3;
    const std::size_t stages_per_rank = ranks == 1 ? 2 + random() % 2 : 1 + random() % 2;
    const Cluster cluster = random_cluster(random, ranks, true);
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    const Placement placement = round_robin(ranks * stages_per_rank, ranks);
    if (model.last() < static_cast<std::int32_t>(placement.stages())) continue;
    const CutMoves moves(model, placement);
    Random numbers(round);
    Cuts cuts{0};
    for (std::size_t s = 1; s < placement.stages(); ++s)
      cuts.push_back(static_cast<std::int32_t>(s));
    cuts.push_back(model.last());
    std::set<Cuts> seen{cuts};
    for (int k = 0; k < 20000; ++k) {
      cuts = moves.random(cuts, numbers);
      ASSERT_EQ(cuts.front(), 0);
      ASSERT_EQ(cuts.back(), model.last());
      ASSERT_TRUE(std::ranges::is_sorted(cuts, std::less_equal{})) << round;
      seen.insert(cuts);
    }
    EXPECT_EQ(seen.size(), count_of_cuts(model.last(), placement.stages())) << round;
  }
}

// A cut that follows goes to the nearest position, so each end of a stage is off by at most half a
// layer.
TEST(CutMoves, OfRowsLeaveTheStagesBetweenAsLongOrAsLarge) {
  std::mt19937 random(6);
  int rows = 0, of_one_rank = 0;
  for (int round = 0; round < 20; ++round) {
    const Layers layers =
        random_layers(random, {.layers = 60, .shared_parameters = false, .illegal_cuts = false});
    const Cluster cluster = random_cluster(random, 3, false);
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    const CutMoves moves(model, round_robin(6, 3));
    const std::vector<const std::vector<double>*> lengths{&model.load(0), &model.held(Hold::Saved)};
    const auto longest_layer = [&](const std::vector<double>& sums) {
      double longest = 0;
      for (std::int32_t q = 0; q < model.last(); ++q)
        longest = std::max(longest, between(sums, q, q + 1));
      return longest;
    };
    Random numbers(round);
    const Cuts from{0, 10, 20, 30, 40, 50, 60};
    for (int k = 0; k < 500; ++k) {
      const Cuts to = moves.random(from, numbers);
      const auto moved = [&](std::size_t i) { return to[i] != from[i]; };
      std::size_t first = 1, last = 5;
      while (first <= last && !moved(first)) ++first;
      while (last > first && !moved(last)) --last;
      if (first + 2 > last) continue;  // one cut or two
      const auto kept = [&](const std::vector<double>* sums) {
        for (std::size_t s = first; s < last; ++s)
          if (std::abs(of_stage(*sums, to, s) - of_stage(*sums, from, s)) > longest_layer(*sums))
            return false;
        return true;
      };
      const bool two_cuts = !moved(first + 1) && (last == first + 2 || !moved(last - 1));
      if (two_cuts) continue;
      EXPECT_TRUE(std::ranges::any_of(lengths, kept)) << round << ' ' << k;
      ++rows, of_one_rank += last - first + 1 == 3;  // stages first - 1 and first + 2
    }
  }
  EXPECT_GT(rows, 3000);
  EXPECT_GT(of_one_rank, rows / 3);
}

}  // namespace
}  // namespace pfeife
