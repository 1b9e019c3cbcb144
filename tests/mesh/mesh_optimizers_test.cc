// What optimizers keep and take in a mesh.
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_layers.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

struct MeshOptimizers : ::testing::Test {
  MeshOptimizers() {
    run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
    run.architecture.layers = 3;
    run.architecture.sequence = 1024;
    run.type = DType::BFloat16;
    network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  }
  StateSums sums(const Optimizer& optimizer) {
    run.optimizer = optimizer;
    return divided_state(rank_layers(run, network), run, network);
  }
  /// Bytes a parameter: weights, gradients and state.
  double bytes(const Optimizer& optimizer) {
    return static_cast<double>(sums(optimizer).fixed.value) /
           static_cast<double>(parameter_count(run.architecture));
  }
  MeshRun run;
  Network network;
};

// bf16 weights 2, fp32 gradients 4; state with masters: Adam 12, Lion 8, none 4; 8-bit Adam 2.031
// without masters (norms of 4096 elements, too).
TEST_F(MeshOptimizers, KeepWhatTheTableSays) {
  EXPECT_EQ(bytes(Optimizer::Adam), 18);
  EXPECT_EQ(bytes(Optimizer::Lion), 14);
  EXPECT_EQ(bytes(Optimizer::Sgd), 10);
  EXPECT_EQ(bytes(Optimizer::MomentumBf16), 8);
  EXPECT_EQ(bytes({Optimizer::Own, 8, 0}), 14);
  EXPECT_EQ(bytes(Optimizer::Adam8Bit), 8.03125);
}

// Megatron Core's guide: 6 + 12/d of the distributed optimizer; Lion 6 + 8/d.
TEST_F(MeshOptimizers, DivideTheirStateOverReplicas) {
  run.mesh.size(Axis::Data) = 4;
  run.zero = 1;
  EXPECT_NEAR(bytes(Optimizer::Adam), 6 + 12.0 / 4, 1e-6);
  EXPECT_NEAR(bytes(Optimizer::Lion), 6 + 8.0 / 4, 1e-6);
}

// Muon's five steps on each hidden matrix of a layer (q and output 4096 x 4096, k and v 1024 x
// 4096, gate, up and down 4096 x 14336), at the peak of 989 TFLOP/s at best; its state is Lion's
// but for embedding and head, which AdamW trains.
TEST_F(MeshOptimizers, OfMuonMultiplyMatrices) {
  const auto products = [](double m, double n) { return 5 * (4 * m * m * n + 2 * m * m * m); };
  const double flops =
      3 * (2 * products(4096, 4096) + 2 * products(1024, 4096) + 3 * products(4096, 14336));
  const Nanoseconds lion = sums(Optimizer::Lion).optimizer, muon = sums(Optimizer::Muon).optimizer;
  EXPECT_GT(seconds(muon), seconds(lion) + flops / 1e15);
  EXPECT_LT(seconds(muon), seconds(lion) + 3 * flops / 1e15);
  const double others =
      2.0 * 128256 * 4096 / static_cast<double>(parameter_count(run.architecture));
  EXPECT_NEAR(bytes(Optimizer::Muon), 14 + 4 * others, 1e-3);
}

}  // namespace
}  // namespace pfeife
