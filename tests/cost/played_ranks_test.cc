// What plans reserve: by hand, and the played lifetimes beside the planner's own count of bytes.
#include "planner/cost/allocator/played_ranks.h"

#include <gmock/gmock.h>

#include "planner/cost/estimate/priced_plan.h"
#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/roofline.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

Plan plan_of(const ScheduleSpec& spec, Partition partition, const Layers& layers,
             Activations activations = {}) {
  Plan plan;
  plan.spec = spec;
  plan.partition = std::move(partition);
  plan.placement = placement_for(spec);
  plan.activations = std::move(activations);
  Cluster cluster;
  cluster.kinds = {{.name = "device", .memory = 80 * kGiB}};
  cluster.kind_of_device.assign(spec.ranks, 0);
  const std::size_t pairs = spec.ranks * spec.ranks;
  cluster.paths.assign(pairs, Path{.bandwidth = {{{Bytes{1}, {1e9}}}}});
  plan.schedule = generate(spec);
  return std::get<PricedPlan>(priced_plan(plan, false, layers, cluster)).plan;
}

/// A layer with a parameter of 20 MiB, of which a microbatch keeps 30 MiB.
Layers one_layer() {
  Layers layers;
  layers.layers = {{.name = "a", .times = {{milliseconds{1}, milliseconds{1}, milliseconds{1}}}}};
  layers.storages = {
      {.bytes = 30 * kMiB, .savers = {LayerId{0}}, .weight_savers = {}, .value = {}}};
  layers.parameters = {{"w", 20 * kMiB, 20 * kMiB, 40 * kMiB, {LayerId{0}}, {milliseconds{1}}}};
  return layers;
}

// Weights 20, what the microbatch keeps 30, its gradient 20: a segment each. The kept 30 are free
// when the step makes the two moments: one takes 20 of them, the other a new segment. The next step
// finds 10 where it needs 30: one more segment. 120 reserved, 110 allocated.
TEST(PlayedRanks, MomentsTearUpWhatTheFirstStepHasLeft) {
  const Layers layers = one_layer();
  const Plan plan = plan_of({"gpipe", 1, 1, 1, {}, {}}, {}, layers);
  EXPECT_EQ(plan.peak_memory.front(), 110 * kMiB);
  const PlayedRank rank = played_ranks(plan, layers, {}).front();
  EXPECT_EQ(rank.allocated, 110 * kMiB);
  EXPECT_EQ(rank.reserved, 120 * kMiB);
  EXPECT_THAT(reserved_memory(plan, layers, {}), ElementsAre(120 * kMiB));
}

// 110 MiB x 1.05 and x 1.02.
TEST(PlayedRanks, AFactorStandsForLifetimesThatNobodyKnows) {
  Layers layers = one_layer();
  const Plan plan = plan_of({"gpipe", 1, 1, 1, {}, {}}, {}, layers);
  layers.storages.clear();
  EXPECT_THAT(reserved_memory(plan, layers, {}), ElementsAre(Bytes{121'110'528}));
  EXPECT_THAT(reserved_memory(plan, layers, {.expandable_segments = true}),
              ElementsAre(Bytes{117'650'227}));
}

// Bytes handed out follow from the lifetimes that the planner counts: both agree but for rounding
// and for tensors that end within a layer.
class PlayedModels : public ::testing::TestWithParam<const char*> {
 protected:
  static Layers layers(const Graph& graph) {
    DeviceKind kind;
    kind.name = "device";
    kind.memory_bandwidth = {1e12};
    kind.peak = {{"fp32", {1e13}}};
    return layers_from_graph(
        graph, {roofline_profile(graph, kind, {Precision::Fp32, Optimizer::Adam, 2})});
  }
};

TEST_P(PlayedModels, HandOutWhatThePlannerCounts) {
  const Graph graph = read_pt2(std::string(PFEIFE_SOURCE_DIR "/configs/models/") + GetParam(), 2);
  const Layers of = layers(graph);
  std::vector<std::int32_t> legal;
  for (std::size_t l = 0; l + 1 < of.size(); ++l)
    if (of.layers[l].no_cut_after.empty()) legal.push_back(static_cast<std::int32_t>(l));
  Partition partition;
  for (std::size_t s = 1; s < 4; ++s) partition.cuts.push_back(legal[s * legal.size() / 4]);
  for (const char* family : {"1f1b", "zb_h1"})
    for (const bool again : {false, true}) {
      const Plan plan = plan_of({family, 4, 6, 1, {}, {}}, partition, of,
                                {.stages = std::vector<bool>(4, again)});
      const std::vector<PlayedRank> played = played_ranks(plan, of, {});
      for (std::size_t r = 0; r < played.size(); ++r) {
        const double count = static_cast<double>(plan.peak_memory[r].value);
        EXPECT_NEAR(static_cast<double>(played[r].allocated.value) / count, 1, 0.05)
            << family << (again ? " recomputed" : "") << " rank " << r;
        EXPECT_GE(played[r].reserved, played[r].allocated);
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Archives, PlayedModels,
                         ::testing::Values("gpt2_large.pt2", "resnet50.pt2"), [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace pfeife
