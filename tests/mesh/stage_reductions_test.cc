// Reductions of gradients over dp, beside the last backward, and what of them is exposed.
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_price.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

MeshRun stages(std::int64_t pp, std::int64_t dp, std::int64_t stages_per_rank) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
  run.mesh.sizes = {1, 1, pp, dp};
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  run.global_batch = 128;
  run.type = DType::BFloat16;
  run.stages_per_rank = stages_per_rank;
  if (stages_per_rank > 1) run.schedule = "interleaved_1f1b";
  run.balanced = true;
  return run;
}

/// With a wire of so many bytes a second between hosts.
struct Both {
  Both(MeshRun run, double wire) {
    Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
    network.nic = {wire};
    behind = price_mesh(run, network);
    run.overlap_reductions = true;
    made = mesh_layers(run, network);
    beside = price_mesh(run, network);
  }
  MeshLayers made;
  MeshPrice behind, beside;
};

/// What is done of one stage's reductions by when, moment by moment: layers end their backward one
/// after another, and one wire reduces what is ready, in that order.
Nanoseconds left_at_the_end(const MeshLayers& made, std::size_t begin, std::size_t end) {
  std::vector<Nanoseconds> reduction(made.layers.size());
  for (std::size_t p = 0; p < made.reduction.size(); ++p)
    reduction[made.layers.parameters[p].users.front().index()] += made.reduction[p];
  Nanoseconds clock{0}, wire{0};
  for (std::size_t l = end; l-- > begin;) {
    const LayerTimes& times = made.layers.layers[l].times.front();
    clock += times.backward_input + times.backward_weight;
    wire = std::max(wire, clock) + reduction[l];
  }
  return wire - clock;
}

TEST(Reductions, OfEachRanksFirstStageAreExposedAsFarAsItsLastBackwardDoesNotHideThem) {
  for (const std::int64_t pp : {1, 2, 4})
    for (const std::int64_t v : {1, 2})
      for (const double wire : {1e9, 1e10, 1e11}) {
        if (pp == 1 && v > 1) continue;
        const Both both(stages(pp, 64 / pp, v), wire);
        const Partition& partition = both.beside.partition;
        for (std::size_t r = 0; r < static_cast<std::size_t>(pp); ++r) {
          const MeshShares &beside = both.beside.shares[r], &behind = both.behind.shares[r];
          EXPECT_EQ(behind.exposed, behind.reduction);
          EXPECT_EQ(beside.reduction, behind.reduction);
          EXPECT_EQ(beside.optimizer, behind.optimizer);
          EXPECT_EQ(beside.compute, behind.compute);
          EXPECT_EQ(beside.exposed, left_at_the_end(both.made, partition.begin(r),
                                                    partition.end(r, both.made.layers.size())))
              << pp << " " << v << " " << wire;
          EXPECT_LT(beside.exposed, beside.reduction);
        }
        EXPECT_LT(both.beside.plan.estimate, both.behind.plan.estimate);
      }
}

// Embedding and head of different ranks: their gradients are added up first, then reduced over dp.
TEST(Reductions, OfWhatRanksShareStayBehind) {
  MeshRun run = stages(4, 16, 1);
  run.architecture.tied_embedding = true;
  const Both both(run, 5e10);
  const LayerParameter& tied = both.made.layers.parameters.front();
  ASSERT_EQ(tied.users.size(), 2u);
  EXPECT_TRUE(both.made.behind.front());
  EXPECT_GE(both.beside.shares.back().exposed, both.made.reduction.front());
  ASSERT_EQ(both.beside.plan.costs.reductions.size(), 1u);
}

// What ranks exchange of a shared gradient has the bytes in which gradients travel, not those in
// which they are held.
TEST(Reductions, OfWhatRanksShareTravelAsOtherGradientsDo) {
  MeshRun run = stages(4, 1, 1);
  run.architecture.tied_embedding = true;
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  const Bytes elements{run.architecture.vocabulary * run.architecture.hidden};
  for (const std::int64_t bytes : {2, 4}) {
    run.gradient_bytes = bytes;
    const MeshPrice price = price_mesh(run, network);
    ASSERT_EQ(price.plan.costs.reductions.size(), 1u);
    EXPECT_EQ(price.plan.costs.reductions.front().bytes, bytes * elements);
  }
}

TEST(Reductions, OfZeRO3AreInEachBackwardEitherWay) {
  MeshRun run = stages(2, 32, 1);
  run.zero = 3;
  const Both both(run, 5e10);
  EXPECT_EQ(both.beside.plan.estimate, both.behind.plan.estimate);
  EXPECT_TRUE(both.made.layers.reductions.empty());
}

}  // namespace
}  // namespace pfeife
