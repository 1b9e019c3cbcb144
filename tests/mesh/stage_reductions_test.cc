// Reductions of gradients over dp, beside the last backward, and what of them is exposed.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"
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
    network.levels[1].bandwidth = {wire};
    behind = price_mesh(run, network);
    run.overlap_reductions = true;
    made = mesh_layers(run, network);
    beside = price_mesh(run, network);
  }
  MeshLayers made;
  MeshPrice behind, beside;
};

/// How long a rank's link still reduces when the rank has done its last backward, moment by moment:
/// layers end their backward one after another, and the link reduces what is ready, in that order.
Nanoseconds left_at_the_end(const Both& both, const Trace& trace, RankId rank) {
  const MeshLayers& made = both.made;
  std::vector<Nanoseconds> reduction(made.layers.size());
  for (std::size_t p = 0; p < made.reduction.size(); ++p)
    reduction[made.layers.parameters[p].users.front().index()] += made.reduction[p];
  std::vector<std::pair<Nanoseconds, StageId>> last;  // end of each stage's last backward
  for (const Event& event : trace.events) {
    const auto* action = std::get_if<Action>(&event.cell);
    if (event.rank != rank || action == nullptr || action->op != Op::Backward) continue;
    std::erase_if(last, [&](const auto& one) { return one.second == action->stage; });
    last.emplace_back(event.end, action->stage);
  }
  std::ranges::sort(last);
  Nanoseconds wire{0};
  for (const auto& [end_of_backward, stage] : last) {
    const Partition& partition = both.beside.partition;
    Nanoseconds left{0};  // of the stage's backward
    for (std::size_t l = partition.begin(stage.index());
         l < partition.end(stage.index(), made.layers.size()); ++l) {
      const LayerTimes& times = made.layers.layers[l].times.front();
      left += times.backward_input + times.backward_weight;
    }
    for (std::size_t l = partition.end(stage.index(), made.layers.size());
         l-- > partition.begin(stage.index());) {
      const LayerTimes& times = made.layers.layers[l].times.front();
      left -= times.backward_input + times.backward_weight;
      wire = std::max(wire, end_of_backward - left) + reduction[l];
    }
  }
  return std::max(wire - last.back().first, Nanoseconds{0});
}

TEST(Reductions, OfEachRankAreExposedAsFarAsItsBackwardsDoNotHideThem) {
  std::size_t outlast = 0;
  for (const std::int64_t pp : {1, 2, 4})
    for (const std::int64_t v : {1, 2, 4})
      for (const double wire : {1e8, 3e8, 1e9, 1e10, 1e11}) {
        if (pp == 1 && v > 1) continue;
        const Both both(stages(pp, 64 / pp, v), wire);
        const Prices& plan = both.beside.plan;
        const Placement& placement = both.beside.placement;
        const Trace trace = std::get<Trace>(estimate(
            dependencies(plan.lowered, stage_graph(plan.costs), placement, {}), plan.costs));
        EXPECT_EQ(step_time(trace), plan.estimate);
        for (std::size_t r = 0; r < static_cast<std::size_t>(pp); ++r) {
          SCOPED_TRACE(stream_all("pp ", pp, " v ", v, " wire ", wire, " rank ", r));
          const MeshShares &beside = both.beside.shares[r], &behind = both.behind.shares[r];
          EXPECT_EQ(behind.exposed, behind.reduction);
          EXPECT_EQ(beside.reduction, behind.reduction);
          EXPECT_EQ(beside.optimizer, behind.optimizer);
          EXPECT_EQ(beside.compute, behind.compute);
          const Nanoseconds left = left_at_the_end(both, trace, RankId{r});
          EXPECT_EQ(beside.exposed, left);
          EXPECT_LT(beside.exposed, beside.reduction);
          const Attribution where = attribution(trace, RankId{r});
          EXPECT_EQ(where.reduction, left);
          EXPECT_EQ(where.total(), plan.estimate);
          const StageId first{r};  // whose last backward is the rank's last
          outlast += left > plan.costs.replicas[first.index()].behind;
        }
        EXPECT_LT(both.beside.plan.estimate, both.behind.plan.estimate);
      }
  EXPECT_GT(outlast, 5u);
}

// Four replicas in four hosts of eight: each device sends 1.5 times its gradients over its NIC.
// Eight in one host: 1.75 times, over its port, where no switch reduces.
TEST(Reductions, NeedOfTheirLinkWhatARingSends) {
  Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  network.all_reduce.clear();  // measured ones are reduced by the switch, and send less
  for (const bool far : {true, false}) {
    MeshRun run = stages(2, far ? 4 : 8, 1);
    run.mesh.size(Axis::Tensor) = far ? 8 : 1;
    run.overlap_reductions = true;
    const MeshLayers made = mesh_layers(run, network);
    for (std::size_t l = 1; l < made.layers.size(); ++l) {
      std::int64_t bytes = 0;
      for (const LayerParameter& parameter : made.layers.parameters)
        if (parameter.users == std::vector{LayerId{l}}) bytes += parameter.exchanged.value;
      const double sent = (far ? 1.5 : 1.75) * static_cast<double>(bytes),
                   rate = network.levels[far ? 1 : 0].bandwidth.value;
      const LayerReduction& of = made.layers.reductions[l];
      EXPECT_NEAR(seconds(of.wire), sent / rate, 20e-9);
      EXPECT_LE(of.wire, of.time);
      if (bytes == 0) continue;  // attention itself
      EXPECT_GT(static_cast<double>(of.wire.count()), 0.7 * static_cast<double>(of.time.count()));
    }
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
