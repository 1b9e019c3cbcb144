// Formats below 16 bits: what a rank holds and keeps, by hand; who cannot run them; racks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/request/request.h"
#include "planner/mesh/mesh_layers.h"
#include "planner/mesh/mesh_price.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

struct FormatsOfMeshes : ::testing::Test {
  FormatsOfMeshes() : network(read_network(kConfigs / "clusters/gb200_nvl72.yaml")) {
    run = usual_mesh().run;
    run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
    run.architecture.sequence = 4096;
    run.global_batch = 1;
  }
  MeshLayers layers(Format format) const {
    MeshRun of = run;
    of.format = format;
    return mesh_layers(of, network);
  }
  static Bytes weights(const MeshLayers& pieces) {
    Bytes sum;
    for (const LayerParameter& parameter : pieces.layers.parameters) sum += parameter.bytes;
    return sum;
  }
  static Bytes kept(const MeshLayers& pieces) {
    Bytes sum;
    for (const Layer& layer : pieces.layers.layers) sum += layer.saved;
    for (const LayerStorage& storage : pieces.layers.storages) sum += storage.bytes;
    return sum;
  }
  MeshRun run;
  Network network;
};

// Llama 3 8B has 8,030,261,248 parameters. In linear layers are 4096 x (4096 + 2 x 1024) + 4096^2
// + 3 x 4096 x 14336 = 218,103,808 a layer; embedding, head and norms stay in 2 bytes.
// mxfp8: two layouts of 1 + 1/32 bytes. nvfp4: 2 bytes, and two layouts of 1/2 + 1/16.
// fp8: two layouts of a byte, in 2 bytes as well in the first and the last of 32 layers.
TEST_F(FormatsOfMeshes, HoldWeightsAsTheRecipeSays) {
  const std::int64_t all = 8'030'261'248, layer = 218'103'808, linear = 32 * layer;
  EXPECT_EQ(weights(layers(Format::Wide)), Bytes{2 * all});
  EXPECT_EQ(weights(layers(Format::MxFp8)), Bytes{2 * all + linear / 16});
  EXPECT_EQ(weights(layers(Format::NvFp4)), Bytes{2 * all + linear + linear / 8});
  EXPECT_EQ(weights(layers(Format::Fp8)), Bytes{2 * all});
}

// A layer of 4,096 tokens keeps, for weight gradients, the inputs of four products: normed states
// (4096, for q, k, v at once), attention's result (4096), normed states (4096) and silu's product
// (14336). In 16 bits the attention's result is kept once for attention and the product; in a
// format attention keeps its own. mxfp8 has 33/32 bytes an element.
TEST_F(FormatsOfMeshes, KeepInputsOfProductsCast) {
  const std::int64_t tokens = 4096, inputs = 4096 + 4096 + 14336, attention = 4096;
  const std::int64_t less = 2 * tokens * inputs - 33 * tokens * (inputs + attention) / 32;
  EXPECT_EQ(kept(layers(Format::Wide)) - kept(layers(Format::MxFp8)), Bytes{32 * less});
}

TEST_F(FormatsOfMeshes, LeaveEmbeddingHeadAndAttentionAsTheyAre) {
  const MeshLayers wide = layers(Format::Wide), narrow = layers(Format::MxFp8);
  const auto times = [](const MeshLayers& pieces, std::size_t l) {
    return pieces.layers.layers[l].times.front();
  };
  const std::size_t last = wide.layers.size() - 1;
  EXPECT_EQ(times(wide, 0), times(narrow, 0));
  EXPECT_EQ(times(wide, 2), times(narrow, 2));  // attention of the first layer
  EXPECT_EQ(times(wide, last), times(narrow, last));
  EXPECT_GT(times(wide, 3).forward, times(narrow, 3).forward);
  EXPECT_GT(times(wide, 3).backward_weight, times(narrow, 3).backward_weight);
}

TEST_F(FormatsOfMeshes, AreRefusedWhereTheDeviceHasNone) {
  network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  try {
    layers(Format::MxFp8);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'h100_sxm' lists no peak for mxfp8"));
    EXPECT_THAT(error.what(), HasSubstr("take bf16, fp8, fp8_block"));
  }
}

// Racks of 72 take 64 each of a mesh in powers of two: 256 devices are four racks, and expert
// parallelism over 64 stays in one.
TEST_F(FormatsOfMeshes, RacksGiveAsManyDevicesAsLieAlike) {
  EXPECT_EQ(network.devices_per_host, 4);
  EXPECT_EQ(network.inner().devices, 72);
  run.mesh.sizes = {1, 1, 4, 64};
  EXPECT_EQ(used_domains(run.mesh, network).front(), 64);
  EXPECT_EQ(gradient_group(run, false, network), (GroupShape{{64, 64}}));
  run.mesh.sizes = {1, 1, 1, 256};
  EXPECT_EQ(gradient_group(run, false, network), (GroupShape{{64, 256}}));
  run.mesh.sizes = {1, 1, 1, 72};
  EXPECT_EQ(used_domains(run.mesh, network).front(), 72);
}

}  // namespace
}  // namespace pfeife
