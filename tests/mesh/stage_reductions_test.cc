// Reductions of gradients in the order of the schedule, and what of them is exposed.
#include "planner/mesh/stage_reductions.h"

#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs";

MeshRun four_stages(std::int64_t stages_per_rank) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
  run.mesh.sizes = {1, 1, 4, 16};
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  run.global_batch = 128;
  run.type = DType::BFloat16;
  run.stages_per_rank = stages_per_rank;
  if (stages_per_rank > 1) run.schedule = "interleaved_1f1b";
  run.balanced = true;
  return run;
}

struct Both {
  MeshPrice behind, beside;
};
Both priced(const MeshRun& run) {
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  return {price_mesh(run, network), price_mesh(run, network, {.overlap_reductions = true})};
}

// With one stage nothing is left to compute when its last backward is done.
TEST(StageReductions, OfOneStageARankAreExposed) {
  const Both both = priced(four_stages(1));
  EXPECT_EQ(both.beside.plan.estimate, both.behind.plan.estimate);
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_GT(both.behind.shares[r].reduction, Nanoseconds{0});
    EXPECT_EQ(both.behind.shares[r].exposed, both.behind.shares[r].reduction);
    EXPECT_EQ(both.beside.shares[r].exposed, both.behind.shares[r].reduction);
    EXPECT_EQ(both.beside.shares[r].optimizer, both.behind.shares[r].optimizer);
  }
}

// The later of two stages of a rank is done first: its reduction runs beside the backwards of the
// earlier one, whose own runs beside the later one's optimizer step.
TEST(StageReductions, OfSeveralStagesARankRunBesideWhatItStillComputes) {
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  for (const int zero : {0, 1}) {
    MeshRun run = four_stages(2);
    run.zero = zero;
    const MeshLayers made = mesh_layers(run, network);
    const Both both = priced(run);
    EXPECT_LT(both.beside.plan.estimate, both.behind.plan.estimate);
    const Partition& partition = both.beside.partition;
    std::vector<Nanoseconds> own(partition.stages());
    for (std::size_t p = 0; p < made.reduction.size(); ++p) {
      const std::size_t layer = made.layers.parameters[p].users.front().index();
      std::size_t s = 0;
      while (partition.end(s, made.layers.size()) <= layer) ++s;
      own[s] += made.reduction[p];
    }
    for (std::size_t r = 0; r < 4; ++r) {
      const Nanoseconds update = both.beside.plan.costs.stages[r + 4].optimizer;
      EXPECT_EQ(both.beside.shares[r].reduction, own[r] + own[r + 4]);
      EXPECT_EQ(both.beside.shares[r].exposed, std::max(own[r] - update, Nanoseconds{0})) << zero;
      if (zero == 1) {
        EXPECT_GT(both.beside.shares[r].exposed, Nanoseconds{0});
      }
    }
  }
}

// Embedding and head of different ranks: their stages wait for one another, then reduce over dp.
TEST(StageReductions, OfTiedStagesStayInTheirOptimizerSteps) {
  MeshRun run = four_stages(1);
  run.architecture.tied_embedding = true;
  const Both both = priced(run);
  EXPECT_EQ(both.beside.plan.estimate, both.behind.plan.estimate);
  const auto& reductions = both.beside.plan.costs.reductions;
  ASSERT_EQ(reductions.size(), 3u);
  EXPECT_EQ(reductions[0].stages, (std::vector<StageId>{StageId{0}, StageId{3}}));
  EXPECT_EQ(reductions[1].stages, std::vector<StageId>{StageId{1}});
  EXPECT_EQ(reductions[2].stages, std::vector<StageId>{StageId{2}});
}

}  // namespace
}  // namespace pfeife
