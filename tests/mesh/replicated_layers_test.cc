// Replicas of a pipeline of known layers: by hand.
#include "planner/mesh/replicated_layers.h"

#include <gtest/gtest.h>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

constexpr Nanoseconds us(std::int64_t count) { return Nanoseconds{1000 * count}; }

/// Three layers, forward 10, backward 20 ms, each with 100 MiB of fp32 parameters, 40 us of update.
Layers three_layers() {
  Layers layers;
  const Bytes bytes{std::int64_t{100} << 20};
  for (std::size_t l = 0; l < 3; ++l) {
    layers.layers.push_back({.times = {{us(10'000), us(12'000), us(8'000)}}});
    layers.parameters.push_back({"p", bytes, bytes, 2 * bytes, {LayerId{l}}, {us(40)}});
  }
  return layers;
}
/// Eight devices that send so many bytes a second, without latency.
Cluster cluster_of(double rate) { return uniform_cluster(8, {}, {rate}, Nanoseconds{0}); }

/// A ring all-reduce of 100 MiB over four: six times a quarter of it.
Nanoseconds ring(double rate) {
  return nanoseconds_from_seconds(1.5 * static_cast<double>(std::int64_t{100} << 20) / rate);
}
void expect_near(Nanoseconds a, Nanoseconds b) {
  EXPECT_NEAR(static_cast<double>(a.count()), static_cast<double>(b.count()), 2000);
}

TEST(ReplicatedLayers, ReduceEachLayerBesideTheLayersBeforeIt) {
  const Layers one = three_layers();
  const double rate = 5e9;  // 31 ms, more than a layer's backward
  const Layers four = replicated(one, {4, 0, true}, cluster_of(rate));
  ASSERT_EQ(four.reductions.size(), 3u);
  for (const LayerReduction& of : four.reductions) {
    expect_near(of.time, ring(rate));
    EXPECT_EQ(of.beside, us(20'000));
  }
  // All three, less 40 ms of backward.
  expect_near(exposed_reduction(four.reductions, 0, 3), 3 * ring(rate) - us(40'000));
  for (const LayerParameter& parameter : four.parameters) EXPECT_EQ(parameter.optimizer[0], us(40));
  EXPECT_EQ(four.layers, one.layers);
}

TEST(ReplicatedLayers, ReduceBehindTheLastBackwardWhereNothingOverlaps) {
  const Layers four = replicated(three_layers(), {4, 0, false}, cluster_of(5e9));
  EXPECT_TRUE(four.reductions.empty());
  for (const LayerParameter& parameter : four.parameters)
    expect_near(parameter.optimizer[0], us(40) + ring(5e9));
}

TEST(ReplicatedLayers, DivideStateThenGradientsThenParameters) {
  const Layers one = three_layers();
  const Bytes whole = one.parameters[1].bytes, part{whole.value / 4};
  for (const int zero : {0, 1, 2, 3}) {
    const LayerParameter of = replicated(one, {4, zero, true}, cluster_of(5e10)).parameters[1];
    EXPECT_EQ(of.state, zero >= 1 ? 2 * part : 2 * whole);
    EXPECT_EQ(of.gradient, zero >= 2 ? part : whole);
    EXPECT_EQ(of.bytes, zero >= 3 ? part : whole);
    EXPECT_EQ(of.optimizer[0], zero >= 1 ? us(10) : us(40));
  }
}

// A gather, as a scatter, is half an all-reduce: 15.7 ms. Forward of the layer before hides 10 ms,
// backward of the next one 20 of 31.5 ms.
TEST(ReplicatedLayers, ExposeOfGathersWhatTheNeighbourDoesNotHide) {
  const double rate = 5e9;
  const Nanoseconds half = ring(rate) / 2;
  const Layers four = replicated(three_layers(), {4, 3, true}, cluster_of(rate));
  EXPECT_TRUE(four.reductions.empty());
  const auto times = [&](std::size_t l) { return four.layers[l].times[0]; };
  expect_near(times(0).forward, us(10'000) + half);
  expect_near(times(1).forward, half);
  expect_near(times(2).backward_input, us(12'000) + half);
  expect_near(times(1).backward_input, us(12'000) + 2 * half - us(20'000));
  expect_near(times(0).backward_input, us(12'000) + 3 * half - us(20'000));
  const Bytes layer{std::int64_t{100} << 20};
  EXPECT_EQ(four.layers[1].temporary.forward, 2 * layer);
  EXPECT_EQ(four.layers[1].temporary.backward, 3 * layer);
}

// A ring of four needs three quarters twice of a switch's ports, 10 GB/s: 1.5 x 100 MiB.
TEST(ReplicatedLayers, ReduceOverTheirOwnPorts) {
  Cluster cluster = cluster_of(5e9);
  cluster.links.clear();
  for (std::size_t d = 0; d < 8; ++d)
    for (const char* way : {"up", "down"})
      cluster.links.push_back({"port" + std::to_string(d) + way, {10e9}});
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b)
      if (a != b) cluster.paths[a * 8 + b].links = {2 * a, 2 * b + 1};
  const Layers four = replicated(three_layers(), {4, 0, true}, cluster);
  for (const LayerReduction& of : four.reductions) {
    expect_near(of.time, ring(5e9));
    expect_near(of.wire, ring(10e9));
  }
  EXPECT_EQ(shared_by_replicas(cluster, {4, 0, true}), cluster);
}

// Four pipelines on a bus; two roots that lead from host to host.
TEST(ReplicatedLayers, ShareLinksThatDevicesHaveTogether) {
  Cluster cluster = cluster_of(5e9);
  cluster.links = {{"bus", {5e9}}};
  for (Path& path : cluster.paths)
    if (!path.links.empty()) path.links = {0};
  EXPECT_EQ(shared_by_replicas(cluster, {4, 0, true}).links[0].alike, 4);
  EXPECT_EQ(shared_by_replicas(cluster, {1, 0, true}), cluster);
  const Cluster roots =
      shared_by_replicas(read_cluster(kConfigs / "clusters/rtx4090_x8.yaml"), {2, 0, true});
  for (const Link& link : roots.links)
    EXPECT_EQ(link.alike, link.name.starts_with("root") ? 2 : 1) << link.name;
}

TEST(ReplicatedLayers, OneReplicaIsThePipelineItself) {
  EXPECT_EQ(replicated(three_layers(), {1, 3, true}, cluster_of(1e9)), three_layers());
}

TEST(ReplicatedLayers, NeedDevicesThatAreAlikeToOneAnother) {
  Cluster cluster = cluster_of(1e9);
  cluster.paths[3].latency = us(9);
  try {
    replicated(three_layers(), {2, 0, true}, cluster);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "parallel.dp needs devices that are all equally far apart, and devices 0 and 3 "
                 "are not as 0 and 1; take a cluster of one host with a switch, or an architecture "
                 "file, whose mesh may have many hosts");
  }
}

}  // namespace
}  // namespace pfeife
