// The bound that knows of shared links, against simulations of all cuts.
#include "planner/search/bound/link_bound.h"

#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/zb_greedy.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/bound/work_bound.h"
#include "sim/simulator.h"
#include "tests/experiments/random_hosts.h"
#include "tests/search/device_instance.h"

namespace pfeife {
namespace {

/// A small model on four devices of two hosts.
struct SmallCase {
  explicit SmallCase(unsigned seed) : random(seed) {
    RandomShape shape;
    shape.layers = 6 + random() % 2;
    shape.two_kinds = false;
    shape.skip_share = seed % 3 == 0 ? 0.5 : 0;
    layers = random_layers(random, shape);
    cluster = random_hosts(random, 4);
    microbatches = 1 + random() % 5;
    semantics = {static_cast<Queues>(seed % 4), seed % 5 == 0 ? Links::Delay : Links::Shared,
                 false};
  }
  Problem problem() const {
    return {.layers = layers,
            .cluster = cluster,
            .schedules = {{"gpipe", 4, microbatches},
                          {"1f1b", 4, microbatches},
                          {"zb_greedy", 4, microbatches}},
            .device_of_rank = {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}},
            .memory_limit = std::vector<Bytes>(4, Bytes{1 << 30}),
            .cuts = std::nullopt};
  }
  Nanoseconds simulated(const Partition& cuts, const Schedule& order) const {
    return simulated(cuts, order, problem().device_of_rank);
  }
  Nanoseconds simulated(const Partition& cuts, const Schedule& order,
                        const std::vector<DeviceId>& devices) const {
    Placement placement = round_robin(4, 4);
    placement.device_of_rank = devices;
    const StageCosts costs = stage_costs(layers, cuts, placement, cluster);
    const DependencyGraph graph =
        dependencies(lower(order, costs, placement), stage_graph(costs), placement, semantics);
    return step_time(std::get<Trace>(simulate(graph, costs, placement, cluster)));
  }

  std::mt19937 random;
  Layers layers;
  Cluster cluster;
  std::size_t microbatches = 1;
  Semantics semantics;
};

class LinkBound : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  }
};

TEST_F(LinkBound, NoPlanIsSimulatedFasterAndItIsOftenAboveTheBoundWithoutLinks) {
  std::size_t checked = 0, above = 0;
  double tightest = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    const SmallCase small(seed);
    const Problem problem = small.problem();
    const CutModel model(small.layers, small.cluster, MemoryRule::Lifetimes);
    const double bound = shared_links_bound(model, problem, problem.schedules[0], small.semantics);
    above += bound > AnyOrder(model, problem, problem.schedules[0]).bound();
    for_each_partition(small.layers, 4, [&](const Partition& cuts) {
      const StageCosts costs = stage_costs(small.layers, cuts, round_robin(4, 4), small.cluster);
      for (const Schedule& order :
           {generate(problem.schedules[0]), generate(problem.schedules[1]),
            schedule_of(
                zero_bubble_order(costs, round_robin(4, 4), small.microbatches, {}, {.moves = 10})
                    .order)}) {
        const auto time = static_cast<double>(small.simulated(cuts, order).count());
        ASSERT_GE(time, bound) << "seed " << seed;
        tightest = std::max(tightest, bound / time);
        ++checked;
      }
    });
  }
  EXPECT_GT(checked, 500u);
  EXPECT_GE(above, 5u);
  EXPECT_GT(tightest, 0.97);
}

// All orders of the devices, all cuts. Every fourth layer is half as fast on the second kind.
TEST_F(LinkBound, OfAnyDevicesIsBelowEveryOrderOfThemAndOftenAboveTheBoundWithoutLinks) {
  std::size_t checked = 0, above = 0;
  double tightest = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    SmallCase small(seed);
    small.cluster.kinds.push_back(small.cluster.kinds.front());
    small.cluster.kind_of_device = {0, 1, 1, 0};
    for (std::size_t l = 0; l < small.layers.size(); ++l) {
      std::vector<LayerTimes>& times = small.layers.layers[l].times;
      times.push_back(times.front());
      if (l % 4 == 0) times.back().forward *= 2;
    }
    for (LayerParameter& parameter : small.layers.parameters)
      if (!parameter.optimizer.empty()) parameter.optimizer.push_back(parameter.optimizer.front());
    const Problem problem = small.problem();
    const Nanoseconds bound = any_devices_links_bound(problem, small.semantics, false);
    above += static_cast<double>(bound.count()) > any_devices_bound(problem);
    for_each_partition(small.layers, 4, [&](const Partition& cuts) {
      for_each_order(problem.device_of_rank, [&](const DeviceOrder& devices) {
        const Schedule order = generate(problem.schedules[checked++ % 2]);
        const Nanoseconds time = small.simulated(cuts, order, devices);
        ASSERT_GE(time, bound) << "seed " << seed;
        tightest = std::max(tightest,
                            static_cast<double>(bound.count()) / static_cast<double>(time.count()));
      });
    });
  }
  EXPECT_GT(checked, 500u);
  EXPECT_GE(above, 2u);
  EXPECT_GT(tightest, 0.6);
}

// Two hosts of two devices, messages of 1000 bytes, 8 microbatches. A message takes 1 us within a
// host and 100 us between them. The last three ranks are not of one host, so every order crosses
// behind its second rank or later, where a pair's messages follow one another: 8 x 2 x 100 us,
// after two forwards of 100 ns, and before two I of 60 ns and the first stage's W of 40 ns.
TEST_F(LinkBound, OfAnyDevicesIsWhatTheOneSlowWireTakes) {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{0});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      if (a / 2 != b / 2) cluster.paths[a * 4 + b].bandwidth.points.front().rate = {1e7};
  Layers layers;
  for (std::size_t l = 0; l < 4; ++l)
    layers.layers.push_back(
        {.name = "l", .times = {{Nanoseconds{100}, Nanoseconds{60}, Nanoseconds{40}}}});
  for (std::size_t l = 0; l < 3; ++l) {
    LayerValue& value = layers.values.emplace_back();
    value.producer = LayerId{l}, value.consumers = {LayerId{l + 1}};
    value.bytes = value.gradient_bytes = Bytes{1000};
  }
  const Problem problem{.layers = layers,
                        .cluster = cluster,
                        .schedules = {{"1f1b", 4, 8}},
                        .device_of_rank = {DeviceId{0}, DeviceId{2}, DeviceId{1}, DeviceId{3}},
                        .memory_limit = std::vector<Bytes>(4, Bytes{1 << 30}),
                        .cuts = std::nullopt};
  const Semantics pairs{Queues::Pair, Links::Delay, false};
  const double wire = 8 * 2 * 100'000.0;
  const auto bound = static_cast<double>(any_devices_links_bound(problem, pairs, false).count());
  EXPECT_EQ(bound, wire + 200 + 120 + 40);
  // The given order crosses three times, and its bound is of more.
  EXPECT_GE(static_cast<double>(shared_links_bound(problem, pairs, false).count()), bound);
}

// A hundred microbatches whose messages take longest of all: side by side if links delay alone, one
// after the other if they are shared or queue up.
TEST_F(LinkBound, IsNotOfMessagesThatMayOverlap) {
  SmallCase small(1);
  small.microbatches = 100;
  for (Path& path : small.cluster.paths)
    for (BandwidthCurve::Point& point : path.bandwidth.points) point.rate.value /= 100;
  for (Link& link : small.cluster.links) link.bandwidth.value /= 100;
  const Problem problem = small.problem();
  const CutModel model(small.layers, small.cluster, MemoryRule::Lifetimes);
  const auto bound = [&](const Semantics& semantics) {
    return shared_links_bound(model, problem, problem.schedules[0], semantics);
  };
  small.semantics = {Queues::None, Links::Delay, false};
  Nanoseconds fastest = Nanoseconds::max();
  for_each_partition(small.layers, 4, [&](const Partition& cuts) {
    fastest = std::min(fastest, small.simulated(cuts, generate(problem.schedules[0])));
  });
  const auto time = static_cast<double>(fastest.count());
  EXPECT_LE(bound(small.semantics), time);
  EXPECT_GT(bound({Queues::None, Links::Shared, false}), time);
  EXPECT_GT(bound({Queues::Pair, Links::Delay, false}), time);
  EXPECT_GT(bound({Queues::Rank, Links::Delay, false}), bound({Queues::Pair, Links::Delay, false}));
}

TEST_F(LinkBound, OfSeveralPlacementsIsTheLeast) {
  const SmallCase small(1);
  Problem problem = small.problem();
  const CutModel model(small.layers, small.cluster, MemoryRule::Lifetimes);
  const double one = shared_links_bound(model, problem, problem.schedules[0], small.semantics);
  EXPECT_EQ(shared_links_bound(problem, small.semantics, false).count(),
            static_cast<std::int64_t>(one));
  const ScheduleSpec many{"gpipe", 4, 9};  // more microbatches: a placement of its own
  problem.schedules = {many};
  EXPECT_GT(shared_links_bound(problem, small.semantics, false).count(),
            static_cast<std::int64_t>(one));
  problem.schedules = {many, {"gpipe", 4, small.microbatches}};
  EXPECT_EQ(shared_links_bound(problem, small.semantics, false).count(),
            static_cast<std::int64_t>(one));
}

}  // namespace
}  // namespace pfeife
