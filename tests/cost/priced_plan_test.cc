// Plans in full: the example that configs/two_stage.yaml works out by hand, and the names of cuts.
#include "planner/cost/estimate/priced_plan.h"

#include <gmock/gmock.h>

#include "planner/schedules/families.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two stages of 2 ms forward and 4 ms backward, and 1 ms for the value between them.
struct PricedPlans : ::testing::Test {
  PricedPlans() {
    const LayerTimes times{milliseconds{2}, milliseconds{2}, milliseconds{2}, {}};
    layers.digest = "of the model";
    layers.order = "least_live";
    layers.microbatch_size = 3;
    layers.node_order = {NodeId{1}, NodeId{0}, NodeId{2}};
    layers.layers = {{.name = "a", .times = {times}, .nodes = {NodeId{0}, NodeId{1}}},
                     {.name = "b", .module_path = "block.b", .times = {{}}},
                     {.name = "c", .times = {times}, .nodes = {NodeId{2}}}};
    layers.values = {{.name = "x",
                      .producer = LayerId{1},
                      .consumers = {LayerId{2}},
                      .bytes = Bytes{10},
                      .gradient_bytes = Bytes{10},
                      .transfer_time = milliseconds{1}}};
    cluster.digest = "of the cluster";
    cluster.kinds = {{.name = "device", .memory = kGiB}};
    cluster.kind_of_device = {0, 0};
    plan.spec = {"gpipe", 2, 2, 1, {}, {}};
    plan.partition = {{1}};
    plan.placement = placement_for(plan.spec);
    plan.placement.device_of_rank = {DeviceId{0}, DeviceId{1}};
    plan.schedule = generate(plan.spec);
  }

  PricedPlan priced(const Plan& choices, bool lowered) const {
    return std::get<PricedPlan>(priced_plan(choices, lowered, layers, cluster));
  }

  Layers layers;
  Cluster cluster;
  Plan plan;
};

// F0 ends at 2 and is there at 3; rank 1 works from 3 to 15; rank 0 gets the gradient of microbatch
// 1 at 16 and needs 4 ms more.
TEST_F(PricedPlans, HaveTheStepByHandAndItsTrace) {
  const PricedPlan full = priced(plan, false);
  EXPECT_EQ(full.plan.estimate, milliseconds{20});
  EXPECT_EQ(step_time(full.estimated), milliseconds{20});
  ASSERT_EQ(full.plan.peak_memory.size(), 2u);
  for (const std::int64_t rank : {0, 1})
    EXPECT_EQ(peak_memory(full.estimated, RankId{rank}),
              full.plan.peak_memory[static_cast<std::size_t>(rank)]);
  EXPECT_EQ(full.costs.stages.at(0).forward, milliseconds{2});
  EXPECT_EQ(priced(full.plan, true).plan, full.plan) << "what is lowered stays as it is";
}

// The second layer has no nodes of its own: what is left of the cut behind it ends with node 1.
TEST_F(PricedPlans, NameTheirModelAndTheirCuts) {
  const Plan full = priced(plan, false).plan;
  EXPECT_EQ(full.model_digest, "of the model");
  EXPECT_EQ(full.cluster_digest, "of the cluster");
  EXPECT_EQ(full.linear_order, "least_live");
  EXPECT_EQ(full.node_order, layers.node_order);
  EXPECT_EQ(full.training.microbatch_size, 3);
  EXPECT_THAT(full.cut_modules, ElementsAre("block.b"));
  EXPECT_THAT(full.cut_nodes, ElementsAre(1));
  EXPECT_THAT(full.activations.stages, ElementsAre(false, false));
  plan.partition.cuts = {0};
  EXPECT_THAT(priced(plan, false).plan.cut_modules, ElementsAre("a")) << "of no module: its name";
  for (Layer& layer : layers.layers) layer.nodes.clear();
  EXPECT_THAT(priced(plan, false).plan.cut_nodes, IsEmpty()) << "without a graph";
}

TEST_F(PricedPlans, OfAScheduleThatCannotRunThereIsADeadlock) {
  plan.schedule = priced(plan, false).plan.schedule;
  std::ranges::reverse(plan.schedule.rows.at(1));
  EXPECT_TRUE(std::holds_alternative<Deadlock>(priced_plan(plan, true, layers, cluster)));
}

}  // namespace
}  // namespace pfeife
