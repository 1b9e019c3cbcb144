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

/// `few` priced layers, then repeated, against `few` + 4.
void expect_same(MeshRun run, std::int64_t few) {
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  run.mesh.size(Axis::Tensor) = 4;
  run.sequence_parallel = true;
  run.architecture.sequence = 2048;
  run.architecture.layers = few + 4;
  MeshRun short_run = run;
  short_run.architecture.layers = few;
  const Layers repeated = without_names(repeat_layer(rank_layers(short_run, network).layers, 4));
  const Layers whole = without_names(priced_layer_by_layer(run, network).layers);
  ASSERT_EQ(repeated.size(), whole.size());
  EXPECT_EQ(repeated.layers, whole.layers);
  EXPECT_EQ(repeated.values, whole.values);
  EXPECT_EQ(repeated.parameters, whole.parameters);
  EXPECT_TRUE(std::ranges::is_permutation(repeated.storages, whole.storages));
}

TEST(RepeatLayer, ADenseModelIsTheSameLayerByLayer) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
  expect_same(run, 3);
}

TEST(RepeatLayer, AModelWithTiedEmbeddingAndExpertsIsTheSameLayerByLayer) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/mixtral_8x7b.yaml");
  run.architecture.tied_embedding = true;
  run.mesh.size(Axis::Data) = run.mesh.experts = 2;
  expect_same(run, 3);
}

}  // namespace
}  // namespace pfeife
