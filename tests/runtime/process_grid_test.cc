// The same over sockets: a fixed sample of the grid with every rank a process. The processes are
// this program again, started once; they go through all points, each with a meeting place of its
// own.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "runtime/check.h"
#include "runtime/launch.h"
#include "runtime/join.h"
#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using namespace testing;

/// Every third point of the grid with several ranks; which, differs from model to model.
std::vector<ScheduleSpec> sample(std::size_t offset) {
  const auto all = accepted_points({2, 3, 4}, {1, 2, 3, 8}, {1, 2, 3});
  std::vector<ScheduleSpec> chosen;
  for (std::size_t i = offset; i < all.size(); i += 3) chosen.push_back(all[i]);
  return chosen;
}

TEST(ProcessGrid, GivesTheGradientsOfTheUnsplitModelWithRanksAsProcesses) {
  const std::string failure =
      run_local_ranks(4, {"test", "--gtest_also_run_disabled_tests",
                          "--gtest_filter=ProcessGrid.DISABLED_OneRank", "--gtest_brief=1"});
  EXPECT_EQ(failure, "");
}

/// What one of the processes does. Rank 0 compares.
TEST(ProcessGrid, DISABLED_OneRank) {
  const auto environment = rank_environment();
  if (!environment) GTEST_SKIP() << "is started by the test above";
  Status status(*environment);
  at::set_num_threads(1);
  std::string wrong;
  std::size_t points = 0;
  const RankOptions options{.placing = {.double_precision = true}, .seed = 7};
  for (std::size_t m = 0; m < tiny_models().size(); ++m) {
    const Model model(tiny_models()[m]);
    for (const ScheduleSpec& spec : sample(m)) {
      const std::string point = tiny_models()[m] + " " + name_of(spec);
      status.entering(point);
      const auto meeting = environment->folder / std::to_string(points++);
      std::filesystem::create_directories(meeting);
      if (environment->rank.index() >= spec.ranks) continue;
      const auto place = meeting_in_folder(meeting);
      const auto transport = join_by_sockets(*place, environment->rank, spec.ranks);
      const CheckReport report = check_pipeline(model.pipeline(spec), environment->rank,
                                                model.source, options, 1e-12, *transport);
      if (!report.right()) wrong += point + ": " + to_string(report, 1e-12);
    }
  }
  if (points < 200) wrong += "only " + std::to_string(points) + " points";
  if (wrong.empty())
    status.finished();
  else
    status.failed(wrong);
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace pfeife
