// Names of what a bound covers: they differ where costs do, and nowhere else.
#include "planner/search/joint/class_digest.h"

#include <gtest/gtest.h>

#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

TEST(ClassDigest, OfCostsDiffersWhereAnyCostDoes) {
  std::mt19937 random(3);
  Instance instance = random_instance(random, 2);
  while (instance.problem().device_of_rank.size() < 2) instance = random_instance(random, 2);
  ASSERT_FALSE(instance.layers.values.empty());
  ASSERT_FALSE(instance.layers.storages.empty());
  const std::uint64_t digest = cost_digest(instance.problem());
  const auto differs = [&](const auto& change) {
    Instance changed = instance;
    change(changed.layers, changed.cluster);
    return cost_digest(changed.problem()) != digest;
  };
  const Nanoseconds ns{1};
  const Bytes byte{1};
  EXPECT_FALSE(differs([](Layers&, Cluster&) {}));
  EXPECT_FALSE(differs([](Layers& l, Cluster& c) { l.name = l.digest = c.name = "other"; }));
  EXPECT_FALSE(differs([](Layers& l, Cluster&) { l.layers[0].name = "other"; }));
  for (const std::size_t kind : instance.cluster.kind_of_device) {
    for (Nanoseconds LayerTimes::*work : {&LayerTimes::forward, &LayerTimes::backward_input,
                                          &LayerTimes::backward_weight, &LayerTimes::optimizer})
      EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.layers.back().times[kind].*work += ns; }));
    EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.parameters[0].optimizer[kind] += ns; }));
    EXPECT_TRUE(differs([&](Layers&, Cluster& c) { c.kinds[kind].stage_overhead += ns; }));
    EXPECT_TRUE(differs([&](Layers&, Cluster& c) { c.kinds[kind].iteration_overhead += ns; }));
  }
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.layers[0].saved += byte; }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.layers[0].weight_saved += byte; }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.layers[0].temporary.weight += byte; }));
  EXPECT_TRUE(differs([](Layers& l, Cluster&) {
    std::string& text = l.layers[1].no_cut_after;
    text = text.empty() ? "in-place pair" : "";
  }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.values[0].bytes += byte; }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.values[0].gradient_bytes += byte; }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.values[0].transfer_time = 99 * ns; }));
  EXPECT_TRUE(differs([](Layers& l, Cluster&) { l.values[0].consumers.emplace_back(999); }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.storages[0].bytes += byte; }));
  EXPECT_TRUE(differs([](Layers& l, Cluster&) { l.storages[0].savers.emplace_back(999); }));
  EXPECT_TRUE(differs([&](Layers& l, Cluster&) { l.parameters[0].state += byte; }));
  EXPECT_TRUE(differs([](Layers& l, Cluster&) { l.parameters[0].users.emplace_back(999); }));
  const std::vector<DeviceId> devices = instance.problem().device_of_rank;
  const auto path = [&](Cluster& c) -> Path& {
    return c.paths[devices[0].index() * c.devices() + devices[1].index()];
  };
  EXPECT_TRUE(differs([&](Layers&, Cluster& c) { path(c).latency += ns; }));
  EXPECT_TRUE(differs([&](Layers&, Cluster& c) {
    path(c).bandwidth.points.push_back({Bytes{1 << 30}, {1e15}});
  }));
}

}  // namespace
}  // namespace pfeife
