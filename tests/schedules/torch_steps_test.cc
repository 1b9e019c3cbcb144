// Lengths in unit steps that torch's own simulation gives for its tables.
#include <gtest/gtest.h>

#include "planner/io/plan/schedule_csv.h"
#include "tests/schedules/oracle_csv.h"
#include "tests/schedules/unit_steps.h"

namespace pfeife {
namespace {

TEST(TorchSteps, OfEveryTable) {
  std::size_t checked = 0;
  for (const OracleRow& row : oracle_rows("pytorch_schedules/index.csv")) {
    const Schedule schedule = data_schedule("pytorch_schedules/" + row.at("file"));
    std::size_t actions = 0, sends = 0;
    for (const auto& cells : schedule.rows)
      for (const Cell& cell : cells) {
        actions += !std::holds_alternative<std::monostate>(cell);
        for_each_action(cell, [&](const Action& a) { sends += a.op == Op::Send; });
      }
    EXPECT_EQ(std::to_string(actions), row.at("actions")) << row.at("file");
    EXPECT_EQ(std::to_string(sends), row.at("sends")) << row.at("file");
    if (row.at("simulated_steps").empty()) continue;
    EXPECT_EQ(std::to_string(UnitSteps(schedule).count()), row.at("simulated_steps"))
        << row.at("file");
    ++checked;
  }
  EXPECT_EQ(checked, 14u);
}

TEST(TorchSteps, OfItsOwnTestArtifacts) {
  EXPECT_EQ(UnitSteps(data_schedule("torch_pipelining/zb1p_2rank_2stagep_comms.csv")).count(),
            113u);
  EXPECT_EQ(UnitSteps(data_schedule("torch_pipelining/simple_2rank_2stage_comms.csv")).count(),
            11u);
  EXPECT_EQ(UnitSteps(data_schedule("torch_pipelining/v_2rank_4stage_comms.csv")).count(), 24u);
}

TEST(TorchSteps, AStuckScheduleHasNone) {
  EXPECT_EQ(UnitSteps(data_schedule("pytorch_schedules/broken/deadlock.csv")).count(), 0u);
}

}  // namespace
}  // namespace pfeife
