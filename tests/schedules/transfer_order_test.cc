// Transfers in ready order: nearly as fast under any queue as with free ones, and never a deadlock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/plan/schedule_csv.h"
#include "tests/schedules/deadlock_grid.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/timed.h"

namespace pfeife {
namespace {

TEST(ReadyOrder, NeverDeadlocksOnASmallGrid) {
  std::size_t points = 0;
  EXPECT_THAT(deadlocks_of_grid(5, 9, 3, points), ::testing::ElementsAre());
  EXPECT_GT(points, 500u);
}

/// The compute tables that torch writes.
std::vector<std::string> torch_compute_tables() {
  std::vector<std::string> files;
  for (const OracleRow& row : oracle_rows("pytorch_schedules/index.csv"))
    if (row.at("file").find(".compute.") != std::string::npos) files.push_back(row.at("file"));
  return files;
}

TEST(ReadyOrder, CostsAtMostFourPercentOnEveryTorchTableUnderEveryQueue) {
  const auto files = torch_compute_tables();
  EXPECT_EQ(files.size(), 7u);
  for (const std::string& file : files)
    for (const double transfer : {0.05, 0.2}) {
      const Schedule compute = read_schedule_file(std::string(PFEIFE_SOURCE_DIR) +
                                                  "/tests/data/pytorch_schedules/" + file);
      const Placement placement = placement_of(compute).value();
      const Nanoseconds unit = nanoseconds_from_ms(1);
      const StageCosts costs =
          uniform_costs(placement.stages(), unit, unit, unit, nanoseconds_from_ms(transfer));
      const Schedule lowered = lower(compute, costs, placement);
      const auto time = [&](Queues queues) {
        const auto answer = estimate(
            dependencies(lowered, stage_graph(costs), placement, {.queues = queues}), costs);
        return milliseconds(step_time(std::get<Trace>(answer)));
      };
      for (const Queues queues : {Queues::Edge, Queues::Pair, Queues::Rank})
        EXPECT_LE(time(queues), 1.04 * time(Queues::None))
            << file << " " << transfer << " " << to_string(queues);
    }
}

// Without a transfer time every transfer is ready when its source ends, and many at once: the order
// is that of short ones.
TEST(ReadyOrder, TransfersThatTakeNoTimeAreOrderedLikeShortOnes) {
  for (const ScheduleSpec& spec : search_set(4, 8, std::vector<std::size_t>{1, 2})) {
    const Nanoseconds unit{1000};
    const auto lowered = [&](Nanoseconds transfer) {
      return lower(generate(spec), uniform_costs(spec.stages(), unit, unit, unit, transfer),
                   placement_for(spec));
    };
    EXPECT_EQ(lowered(Nanoseconds{0}), lowered(Nanoseconds{1}))
        << spec.family << " " << knobs(spec);
  }
}

}  // namespace
}  // namespace pfeife
