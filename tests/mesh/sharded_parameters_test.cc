// ZeRO 3: what is held, and what of the gathers compute does not hide.
#include "planner/mesh/sharded_parameters.h"

#include <gtest/gtest.h>

#include "planner/mesh/mesh_price.h"

namespace pfeife {
namespace {

MeshRun eight_replicas(int zero) {
  MeshRun run;
  Architecture& of = run.architecture;
  of.layers = 6, of.hidden = 1024, of.heads = of.kv_heads = 16, of.head_size = 64;
  of.feed_forward = 4096, of.vocabulary = 1024, of.sequence = 512;
  run.mesh.sizes = {1, 1, 1, 8};
  run.global_batch = 32, run.microbatch_size = 2;
  run.zero = zero;
  run.balanced = true;
  return run;
}

Network hosts_of_eight(double port) {
  Network network;
  network.devices_per_host = 8, network.levels = {{8, {port}}};
  network.device.memory = Bytes{std::int64_t{1} << 40};
  network.device.memory_bandwidth = {1e12};
  network.device.peak["fp16"] = {1e14}, network.device.peak["fp32"] = {1e13};
  return network;
}

/// Bytes of the parameters of a transformer layer, 2 an element.
Bytes layer_bytes(const MeshLayers& whole, const std::string& layer) {
  Bytes sum;
  for (const LayerParameter& parameter : whole.layers.parameters)
    if (parameter.name.find(layer) != std::string::npos) sum += parameter.bytes;
  return sum;
}

struct Passes {
  Nanoseconds forward{0}, backward{0};
};
Passes passes(const MeshLayers& made, std::size_t transformer_layer) {
  Passes sum;
  const auto first = static_cast<std::size_t>(made.first[transformer_layer]);
  for (std::size_t l = first; l < first + 3; ++l) {
    const LayerTimes& times = made.layers.layers[l].times.front();
    sum.forward += times.forward;
    sum.backward += times.backward_input + times.backward_weight;
  }
  return sum;
}

// Gathers of a layer run beside the layer before it, scatters beside the next one's backward, in
// which the layer itself is gathered again. All layers are alike.
TEST(ZeRO3, WhatCommunicationTakesLongerThanItsNeighboursComputeIsExposed) {
  for (const double port : {1e9, 1e10, 1e11, 1e12}) {
    const Network network = hosts_of_eight(port);
    const MeshLayers whole = mesh_layers(eight_replicas(0), network),
                     divided = mesh_layers(eight_replicas(3), network);
    const Bytes bytes = layer_bytes(whole, "layers.3.");
    ASSERT_GT(bytes.value, 2 * 12 * 1024 * 1024);
    const GroupShape group{{8}};
    const auto gather = collective_time(CollectiveKind::AllGather, bytes, group, network),
               scatter = collective_time(CollectiveKind::ReduceScatter, bytes, group, network);
    const Passes compute = passes(whole, 3), with = passes(divided, 3);
    EXPECT_EQ(with.forward - compute.forward, std::max(gather - compute.forward, Nanoseconds{0}))
        << port;
    EXPECT_EQ(with.backward - compute.backward,
              std::max(gather + scatter - compute.backward, Nanoseconds{0}))
        << port;
    const auto first = static_cast<std::size_t>(divided.first[3]);
    EXPECT_EQ(divided.layers.collectives[first].forward, with.forward - compute.forward);
  }
}

// 18 bytes a parameter over eight replicas, and while a layer runs, itself and its neighbour whole.
TEST(ZeRO3, AReplicaHoldsItsPartAndTwoUnits) {
  const Network network = hosts_of_eight(1e11);
  const MeshLayers whole = mesh_layers(eight_replicas(0), network),
                   divided = mesh_layers(eight_replicas(3), network);
  Bytes all, held;
  for (const LayerParameter& parameter : whole.layers.parameters) all += parameter.bytes;
  for (const LayerParameter& parameter : divided.layers.parameters)
    held += parameter.bytes + parameter.gradient + parameter.state;
  const auto rounding = static_cast<std::int64_t>(3 * whole.layers.parameters.size());
  EXPECT_NEAR(static_cast<double>(held.value), static_cast<double>(all.value) * 9 / 8,
              static_cast<double>(rounding));
  EXPECT_EQ(
      divided_state(rank_layers(eight_replicas(3), network), eight_replicas(3), network).fixed,
      held);
  const Bytes layer = layer_bytes(whole, "layers.3.");
  const auto l = static_cast<std::size_t>(whole.first[3]);
  const PassBytes before = whole.layers.layers[l].temporary,
                  after = divided.layers.layers[l].temporary;
  EXPECT_EQ(after.forward - before.forward, Bytes{2 * layer.value});
  EXPECT_EQ(after.backward - before.backward, Bytes{3 * layer.value});
}

TEST(ZeRO3, TakesLessMemoryThanZeRO2AndReducesNothingBeforeTheOptimizer) {
  const Network network = hosts_of_eight(1e11);
  const MeshPrice two = price_mesh(eight_replicas(2), network),
                  three = price_mesh(eight_replicas(3), network);
  EXPECT_LT(three.plan.peak_memory.front(), two.plan.peak_memory.front());
  EXPECT_GT(two.shares.front().reduction, Nanoseconds{0});
  EXPECT_EQ(three.shares.front().reduction, Nanoseconds{0});
  EXPECT_EQ(three.shares.front().optimizer, two.shares.front().optimizer);
}

}  // namespace
}  // namespace pfeife
