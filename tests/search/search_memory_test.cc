// What a search is said to hold, against what the allocator says it holds.
#include "planner/search/price/search_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "planner/search/price/candidate.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

double allocated() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

struct Grid {
  Layers layers;
  Cluster cluster;
  explicit Grid(std::size_t ranks) {
    std::mt19937 random(3);
    RandomShape shape;
    shape.layers = 3 * ranks, shape.skip_share = 0;
    shape.shared_parameters = shape.illegal_cuts = shape.two_kinds = false;
    layers = random_layers(random, shape);
    cluster = random_cluster(random, ranks, false);
  }
};

// Many stages and few microbatches, few and many, with and without W apart.
TEST(SearchMemory, IsWhatTheCandidatesOfASearchHold) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator tells nothing";
#endif
  for (const ScheduleSpec& spec :
       {ScheduleSpec{"1f1b", 64, 128, 1, {}, {}}, ScheduleSpec{"zb_h1", 64, 128, 1, {}, {}},
        ScheduleSpec{"zb1p", 8, 2000, 2, {}, {}}, ScheduleSpec{"gpipe", 128, 256, 1, {}, {}}}) {
    const Grid grid(spec.ranks);
    Problem problem{.layers = grid.layers, .cluster = grid.cluster, .schedules = {spec}};
    for (std::size_t r = 0; r < spec.ranks; ++r) {
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
      problem.memory_limit.emplace_back(std::int64_t{1} << 30);
    }
    const CutModel model(problem.layers, problem.cluster, problem.memory_rule, false);
    const double before = allocated();
    const Candidates candidates(model, problem, spec);
    const double held = allocated() - before;
    const auto forecast =
        static_cast<double>(search_memory(problem.layers, problem.schedules).value);
    EXPECT_GT(held, 0.7 * forecast) << spec.family;
    EXPECT_LT(held, 1.5 * forecast) << spec.family;
  }
}

TEST(SearchMemory, OfScheduleThatTheModelHasNoStagesForIsNothing) {
  const Grid grid(4);
  const std::vector<ScheduleSpec> many{{"gpipe", 4, 8, 100, {}, {}}};
  EXPECT_EQ(search_memory(grid.layers, many), Bytes{0});
}

}  // namespace
}  // namespace pfeife
