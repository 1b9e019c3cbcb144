// Plans that send to the host what has no room: of a chain whose values fit on no device otherwise.
#include "planner/search/steps/offloading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/price/price.h"
#include "planner/search/search.h"

namespace pfeife {
namespace {

constexpr std::int64_t kSaved = 100;  // B a layer and microbatch

/// Four layers, each F = I = W = 1 us.
Layers chain_of_layers() {
  Layers layers;
  const Nanoseconds one{1000};
  for (int l = 0; l < 4; ++l) {
    Layer layer;
    layer.times = {{one, one, one, Nanoseconds{0}}};
    layer.saved = Bytes{kSaved};
    layers.layers.push_back(layer);
  }
  for (int l = 0; l < 3; ++l)
    layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, Bytes{1}, Bytes{1}, {}});
  return layers;
}

/// Devices that take as long for a layer's values, one way, as for its F.
Cluster cluster_with(std::optional<HostLink> link) {
  DeviceKind kind;
  kind.memory = Bytes{1 << 20};
  kind.host_link = link;
  return uniform_cluster(4, kind, {1e12}, Nanoseconds{0});
}

Problem problem_of(const Layers& layers, const Cluster& cluster, std::int64_t limit) {
  return {.layers = layers,
          .cluster = cluster,
          .schedules = {{.family = "1f1b", .ranks = 4, .microbatches = 8}},
          .device_of_rank = {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}},
          .memory_limit = std::vector<Bytes>(4, Bytes{limit}),
          .cuts = Partition{{0, 1, 2}}};
}

const HostLink kLink{.bandwidth = {0.1e9}};

Pool offloading(const Problem& problem) {
  Pool pool(problem.memory_limit);
  add_offloading_plans(problem, {}, search, pool);
  return pool;
}

// Rank 0 has four microbatches in flight, 400 B; with all but two on the host 200 B are enough, and
// the step takes as long: 3 (8 + 4 - 1) us.
TEST(Offloading, FitsWhereNothingElseDoesAndTakesNoLonger) {
  const Layers layers = chain_of_layers();
  const Cluster linked = cluster_with(kLink);
  const Problem problem = problem_of(layers, linked, 250);
  Pool pool(search(problem, {}), problem.memory_limit);
  const Answer& answer = pool.answer();
  ASSERT_TRUE(answer.infeasible);
  add_offloading_plans(problem, {}, search, pool);
  const std::vector<Priced>& plans = answer.plans;
  ASSERT_FALSE(plans.empty());
  EXPECT_EQ(plans.front().estimate, Nanoseconds{33'000});
  EXPECT_TRUE(plans.front().activations.offloads());
  for (const Bytes peak : plans.front().peak_memory) EXPECT_LE(peak, Bytes{250});
  EXPECT_THAT(name_of(plans.front()), ::testing::HasSubstr("offload="));
  EXPECT_FALSE(answer.infeasible);
  ASSERT_TRUE(answer.bound);
  EXPECT_EQ(answer.bound->time, Nanoseconds{33'000});
}

TEST(Offloading, NeedsAWayToTheHostAndRoomThere) {
  const Layers layers = chain_of_layers();
  const Cluster alone = cluster_with(std::nullopt);
  EXPECT_THROW(offloading(problem_of(layers, alone, 250)), ConfigError);
  Cluster small = cluster_with(kLink);
  small.host_memory = Bytes{100};
  EXPECT_TRUE(offloading(problem_of(layers, small, 250)).answer().plans.empty());
  small.devices_per_node = 2, small.host_memory = Bytes{10'000};
  EXPECT_FALSE(offloading(problem_of(layers, small, 250)).answer().plans.empty());
}

// Values of 60 B between layers that save 100 B. Hosts of 180 B have no room for what all stages
// save, so offloading alone does not fit; computed again alone, rank 1 keeps three inputs beside
// what it restores. Both together fit.
TEST(Offloading, WhatIsComputedAgainHasItsInputsOnTheHost) {
  Layers layers = chain_of_layers();
  for (LayerValue& value : layers.values) value.bytes = Bytes{60};
  Cluster linked = cluster_with(kLink);
  linked.host_memory = Bytes{180};
  linked.devices_per_node = 4;
  Problem problem = problem_of(layers, linked, 320);
  EXPECT_TRUE(offloading(problem).answer().plans.empty());
  problem.recompute = Recompute::Choose;
  ASSERT_TRUE(search(problem, {}).infeasible);
  const Pool both = offloading(problem);
  ASSERT_FALSE(both.answer().plans.empty());
  const Activations& chosen = both.answer().plans.front().activations;
  bool pair = false;
  for (std::size_t s = 1; s < 4; ++s) pair |= chosen.stages[s] && chosen.offload[s] > 0;
  EXPECT_TRUE(pair) << name_of(both.answer().plans.front());
  for (const Bytes peak : both.answer().plans.front().peak_memory) EXPECT_LE(peak, Bytes{320});
}

// B of microbatch 0 begins after 10 us on rank 0 and after 8 us on rank 1, which have done F of
// four and of three microbatches by then. All of each, 100 B, is away: 400 B and 300 B. Were it
// half, rank 0 would hold four halves, the half that comes back and messages: more than 250 B.
TEST(Offloading, SaysWhatTheHostLacksAndFitsWithThat) {
  const Layers layers = chain_of_layers();
  Cluster small = cluster_with(kLink);
  small.host_memory = Bytes{100};
  const Pool none = offloading(problem_of(layers, small, 250));
  ASSERT_TRUE(none.answer().host_lack);
  EXPECT_EQ(none.answer().host_lack->shortage, (Shortage{0, Bytes{700}, Bytes{100}}));
  EXPECT_EQ(none.answer().host_lack->plan, "1f1b, offload=1 1 0 0");
  EXPECT_EQ(
      host_text(none.answer().host_lack->shortage),
      "host 0 needs 700 B for what its devices offload and has 100 B (host_memory of the "
      "cluster), so it lacks 600 B: raise host_memory in the cluster file if hosts have more, use "
      "more hosts (devices_per_node), or offload less");
  small.host_memory = none.answer().host_lack->shortage.needed;
  const Pool enough = offloading(problem_of(layers, small, 250));
  EXPECT_FALSE(enough.answer().host_lack);
  ASSERT_FALSE(enough.answer().plans.empty());
  EXPECT_EQ(name_of(enough.answer().plans.front()), none.answer().host_lack->plan);
  small.host_memory = Bytes{699};
  EXPECT_FALSE(fitting(problem_of(layers, small, 250), enough.answer().plans.front()));
}

// A way so slow that nothing is back in time leaves recomputation.
TEST(Offloading, ASlowWayIsNotTaken) {
  const Layers layers = chain_of_layers();
  const Cluster slow = cluster_with(HostLink{.bandwidth = {1e6}});
  const Pool none = offloading(problem_of(layers, slow, 250));
  EXPECT_TRUE(none.answer().plans.empty());
  EXPECT_FALSE(none.answer().host_lack);
}

}  // namespace
}  // namespace pfeife
