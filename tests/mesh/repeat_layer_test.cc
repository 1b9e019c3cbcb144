// A layer priced once and repeated is the model priced layer by layer.
#include "planner/mesh/repeat_layer.h"

#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_layers.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

/// Names of nodes have numbers that count through the graph; nothing else may differ.
Layers without_names(Layers layers) {
  for (Layer& layer : layers.layers) layer.name.clear();
  for (LayerValue& value : layers.values) value.name.clear();
  return layers;
}

/// Layers priced once each, and repeated, against all of them priced; on a mesh of tp 4 and ep 2.
void expect_same(MeshRun run, std::int64_t layers) {
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  run.mesh.size(Axis::Tensor) = 4;
  run.sequence_parallel = run.overlap_streams = true;
  run.architecture.sequence = 2048;
  run.architecture.layers = layers;
  const Layers repeated = without_names(rank_layers(run, network).layers);
  const Layers whole = without_names(priced_layer_by_layer(run, network).layers);
  ASSERT_EQ(repeated.size(), whole.size());
  EXPECT_EQ(repeated.layers, whole.layers);
  EXPECT_EQ(repeated.collectives, whole.collectives);
  EXPECT_EQ(repeated.steps, whole.steps);
  EXPECT_EQ(repeated.values, whole.values);
  EXPECT_EQ(repeated.parameters, whole.parameters);
  EXPECT_TRUE(std::ranges::is_permutation(repeated.storages, whole.storages));
}

TEST(RepeatLayer, ADenseModelIsTheSameLayerByLayer) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
  expect_same(run, 7);
}

TEST(RepeatLayer, AModelWithTiedEmbeddingAndExpertsIsTheSameLayerByLayer) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/mixtral_8x7b.yaml");
  run.architecture.tied_embedding = true;
  run.mesh.size(Axis::Data) = run.mesh.experts = 2;
  expect_same(run, 7);
}

// Mamba, attention, feed-forward parts and experts in an order that does not repeat; layers of
// experts and not, with chunks and without, in turn; in a format of which the end layers have none.
TEST(RepeatLayer, ModelsOfUnlikeLayersAreTheSameLayerByLayer) {
  for (const char* name : {"nemotron_3_nano_30b_a3b", "llama4_maverick"}) {
    MeshRun run;
    run.architecture =
        read_architecture(kConfigs / "architectures" / (std::string(name) + ".json"));
    run.architecture.kv_heads = 4;
    run.type = DType::BFloat16, run.format = Format::Fp8;
    run.mesh.size(Axis::Data) = run.mesh.experts = 2;
    expect_same(run, 24);
  }
}

}  // namespace
}  // namespace pfeife
