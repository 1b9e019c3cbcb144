// What a case says of the cuts and of the devices of its plan.
#include "experiments/plans/case_limits.h"

#include <gmock/gmock.h>

#include "experiments/plans/case_problem.h"
#include "planner/io/experiment/experiment_config.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;

Layers four_layers() {
  Layers layers;
  for (const char* name : {"a", "b", "c", "d"}) layers.layers.push_back({.name = name});
  return layers;
}

Request cut(PlanSettings::Cuts how, std::vector<std::int32_t> given = {}) {
  Request config;
  config.plan.cuts = how;
  config.plan.given_cuts = std::move(given);
  return config;
}

TEST(GivenCuts, AreNoneTheNamedOnesOrAfterEachLayer) {
  const Layers layers = four_layers();
  EXPECT_EQ(given_cuts(cut(PlanSettings::Cuts::Search), layers), std::nullopt);
  EXPECT_EQ(given_cuts(cut(PlanSettings::Cuts::Given, {0, 2}), layers), (Partition{{0, 2}}));
  EXPECT_EQ(given_cuts(cut(PlanSettings::Cuts::EachLayer), layers), (Partition{{0, 1, 2}}));
}

// As in an archive whose last layer is only the model's result.
TEST(GivenCuts, AfterEachLayerLeaveOutThoseThatAreNotAllowed) {
  Layers layers = four_layers();
  layers.layers[0].no_cut_after = "both sides change it";
  layers.layers[2].no_cut_after = "only the model's result follows";
  EXPECT_EQ(given_cuts(cut(PlanSettings::Cuts::EachLayer), layers), (Partition{{1}}));
}

TEST(GivenCuts, ThatAreNotLegalAreRefusedAtTheirPlace) {
  for (const std::vector<std::int32_t>& cuts :
       {std::vector<std::int32_t>{3}, {2, 0}, {1, 1}, {-1}}) {
    CaseConfig config{cut(PlanSettings::Cuts::Given, cuts)};
    config.places = {{"", {"exp.yaml", 1, 1}}, {"plan", {"exp.yaml", 7, 3}}};
    const auto work = [&] { given_cuts(config, four_layers()); };
    EXPECT_THAT(message_of(work), ::testing::StartsWith("plan.cuts: ")) << cuts.back();
    EXPECT_THAT(message_of([&] { with_places(config, work); }),
                ::testing::StartsWith("exp.yaml:7:3: plan.cuts: "))
        << "plan.cuts has no place of its own";
  }
}

// Devices 0 and 2 are large, 1 and 3 small.
TEST(MemoryLimits, AreThoseOfTheDevicesThatTheRanksRunOn) {
  Cluster cluster;
  cluster.kinds = {{.name = "large", .memory = Bytes{100}, .reserve = Bytes{10}},
                   {.name = "small", .memory = Bytes{50}, .reserve = Bytes{20}}};
  cluster.kind_of_device = {0, 1, 0, 1};
  Request config;
  config.plan.allocator.reset();
  config.devices = 3;
  EXPECT_THAT(devices_of(config), ElementsAre(DeviceId{0}, DeviceId{1}, DeviceId{2}));
  EXPECT_THAT(memory_limits(config, cluster), ElementsAre(Bytes{90}, Bytes{30}, Bytes{90}));
  config.plan.devices = {DeviceId{3}, DeviceId{2}, DeviceId{1}};
  EXPECT_THAT(devices_of(config), ElementsAre(DeviceId{3}, DeviceId{2}, DeviceId{1}));
  EXPECT_THAT(memory_limits(config, cluster), ElementsAre(Bytes{30}, Bytes{90}, Bytes{30}));
  EXPECT_THAT(memory_limits(config, cluster, {DeviceId{2}}), ElementsAre(Bytes{90}));
  config.plan.reserve = Bytes{5};
  EXPECT_THAT(memory_limits(config, cluster), ElementsAre(Bytes{45}, Bytes{95}, Bytes{45}));
  config.devices = 2;  // of a longer list the first
  EXPECT_THAT(devices_of(config), ElementsAre(DeviceId{3}, DeviceId{2}));
}

// 1,000 bytes less a reserve of 50: of 950 a fiftieth stays free, 931 may be reserved. Without
// lifetimes 931 / 1.05 may be allocated, with expandable segments 931 / 1.02.
TEST(MemoryLimits, OfGpusLeaveRoomForTheAllocator) {
  Cluster cluster;
  cluster.kinds = {{.name = "gpu", .memory = Bytes{1000}, .reserve = Bytes{50}}};
  cluster.kind_of_device = {0};
  Request config;
  config.devices = 1;
  Layers layers = four_layers();
  bool played = false;
  const auto searched = [&] {
    Problem problem{layers, cluster, {}, devices_of(config), {}, {}};
    set_memory(config, problem);
    played = problem.allocator.has_value();
    return problem.memory_limit;
  };
  EXPECT_THAT(memory_limits(config, cluster), ElementsAre(Bytes{931}));
  EXPECT_THAT(searched(), ElementsAre(Bytes{886}));
  config.plan.allocator->expandable_segments = true;
  EXPECT_THAT(searched(), ElementsAre(Bytes{912}));
  EXPECT_FALSE(played);
  layers.storages = {{.bytes = Bytes{1}, .savers = {LayerId{0}}, .weight_savers = {}, .value = {}}};
  EXPECT_THAT(searched(), ElementsAre(Bytes{931}));
  EXPECT_TRUE(played);
  config.plan.allocator.reset();
  EXPECT_THAT(searched(), ElementsAre(Bytes{950}));
  config.plan.allocator.emplace();
  cluster.kinds.front().type = DeviceType::Cpu;
  EXPECT_THAT(searched(), ElementsAre(Bytes{950}));
  config.plan.memory_margin = 0.1;  // asked for: without an allocator, too
  EXPECT_THAT(searched(), ElementsAre(Bytes{855}));
  cluster.kinds.front().type = DeviceType::Gpu;
  config.plan.allocator.reset();
  EXPECT_THAT(searched(), ElementsAre(Bytes{855}));
}

}  // namespace
}  // namespace pfeife
