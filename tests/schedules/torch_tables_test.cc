// The tables that torch.distributed.pipelining 2.11 writes: generated and lowered equal, cell for
// cell.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/schedule/backward_passes.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/schedules/oracle_csv.h"

namespace pfeife {
namespace {

struct TorchTable {
  const char* file;  // stem below tests/data/pytorch_schedules
  const char* family;
  std::size_t ranks, microbatches, stages_per_rank;
};
void PrintTo(const TorchTable& table, std::ostream* out) { *out << table.file; }

class TorchTables : public ::testing::TestWithParam<TorchTable> {
 protected:
  Schedule read(const std::string& kind) const {
    return data_schedule("pytorch_schedules/" + std::string(GetParam().file) + "." + kind + ".csv");
  }
  ScheduleSpec spec() const {
    const TorchTable& t = GetParam();
    return {.family = t.family,
            .ranks = t.ranks,
            .microbatches = t.microbatches,
            .stages_per_rank = t.stages_per_rank};
  }
  Schedule lowered(const LoweringOptions& options) const {
    const StageCosts costs = uniform_costs(spec().stages(), Nanoseconds{1}, Nanoseconds{1},
                                           Nanoseconds{1}, Nanoseconds{0});
    return lower(read("compute"), costs, placement_for(spec()), options);
  }
};

TEST_P(TorchTables, ComputeTableIsGenerated) { EXPECT_EQ(generate(spec()), read("compute")); }

TEST_P(TorchTables, CommsTableIsLowered) {
  EXPECT_EQ(lowered({.transfers = TransferOrder::Torch,
                     .reduce_grad = ReduceGrad::None,
                     .optimizer_step = false}),
            read("comms"));
}

TEST_P(TorchTables, FullTableIsLowered) {
  EXPECT_EQ(lowered({.transfers = TransferOrder::Torch,
                     .unshard = true,
                     .reduce_grad = ReduceGrad::EveryStage,
                     .optimizer_step = false}),
            read("full"));
}

INSTANTIATE_TEST_SUITE_P(Torch, TorchTables,
                         ::testing::Values(TorchTable{"gpipe_r3_m4_s1", "gpipe", 3, 4, 1},
                                           TorchTable{"1f1b_r4_m6_s1", "1f1b", 4, 6, 1},
                                           TorchTable{"interleaved1f1b_r2_m4_s2",
                                                      "interleaved_1f1b", 2, 4, 2},
                                           TorchTable{"loopedbfs_r2_m3_s3", "looped_bfs", 2, 3, 3},
                                           TorchTable{"interleavedzb_r3_m6_s2", "zb1p", 3, 6, 2},
                                           TorchTable{"zbv_r3_m4_s2", "zbv", 3, 4, 2},
                                           TorchTable{"dualpipev_r2_m5_s2", "dualpipev", 2, 5, 2}),
                         [](const auto& info) { return std::string(info.param.family); });

/// Torch's own test artifacts, made before idle cells were dropped: an idle cell cost a visit.
Schedule lowered_with_idle(const std::string& stem) {
  const Schedule compute = data_schedule("torch_pipelining/" + stem + "_compute.csv");
  const StageCosts costs = uniform_costs(stage_count(compute), Nanoseconds{1}, Nanoseconds{1},
                                         Nanoseconds{1}, Nanoseconds{0});
  return lower(compute, costs, *placement_of(compute),
               {.transfers = TransferOrder::Torch,
                .keep_idle = true,
                .reduce_grad = ReduceGrad::None,
                .optimizer_step = false});
}

// The one artifact whose rank 0 has full backwards: there I and W of a cell are joined before
// lowering.
TEST(TorchArtifacts, InterleavedZeroBubbleWithMergedBackwardsOnRankZero) {
  Schedule compute = data_schedule("torch_pipelining/zb1p_2rank_2stagep_compute.csv");
  EXPECT_EQ(compute, read_schedule_file(
                         std::string(PFEIFE_SOURCE_DIR) +
                             "/tests/data/torch_pipelining/zb1p_2rank_2stagep_compute.old.csv",
                         Dialect::Old));
  EXPECT_EQ(compute,
            generate({.family = "zb1p", .ranks = 2, .microbatches = 8, .stages_per_rank = 2}));
  const StageCosts costs =
      uniform_costs(4, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0});
  EXPECT_EQ(lower(merge_backward(compute), costs, round_robin(4, 2),
                  {.transfers = TransferOrder::Torch,
                   .reduce_grad = ReduceGrad::None,
                   .optimizer_step = false}),
            data_schedule("torch_pipelining/zb1p_2rank_2stagep_comms.csv"));
}

TEST(TorchArtifacts, IdleCellsThatCostAVisitGiveTheTwoOldTables) {
  for (const char* stem : {"simple_2rank_2stage", "v_2rank_4stage"})
    EXPECT_EQ(lowered_with_idle(stem),
              data_schedule("torch_pipelining/" + std::string(stem) + "_comms.csv"))
        << stem;
}

}  // namespace
}  // namespace pfeife
