// What a run's own kernels change: measured products, and those of Megatron-LM and Transformer
// Engine. By hand, of Llama 3 8B: hidden 4096, 32 heads of 128, 8 of keys, 14336 inwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/request/request.h"
#include "planner/mesh/mesh_layers.h"
#include "planner/mesh/mesh_price.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

struct OwnKernels : ::testing::Test {
  OwnKernels() : network(read_network(kConfigs / "clusters/b200_sxm_hosts.yaml")) {
    run = usual_mesh().run;
    run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
    run.architecture.sequence = 4096, run.architecture.layers = 4;
    run.mesh.size(Axis::Tensor) = 4;
    run.sequence_parallel = true, run.global_batch = 1;
  }
  std::vector<ProductUse> products() const { return mesh_products(run, network); }
  std::int64_t times(ProductPass pass, std::int64_t m, std::int64_t n, std::int64_t k) const {
    for (const ProductUse& use : products())
      if (use.shape == ProductShape{ProductOperator::Product, pass, 1, m, n, k}) return use.times;
    return 0;
  }
  Bytes peak() const { return price_mesh(run, network).plan.peak_memory.front(); }
  MeshRun run;
  Network network;
};

// On a rank of 4: q 1024 columns, k and v 256 each, projection 1024 -> 4096, gate and up 7168, down
// 3584 -> 4096; the head 32064 words. k and v are of one shape.
TEST_F(OwnKernels, ProductsAreListedOnceWithHowOftenTheyRun) {
  using enum ProductPass;
  EXPECT_EQ(times(Forward, 4096, 1024, 4096), 4);
  EXPECT_EQ(times(Forward, 4096, 256, 4096), 8);
  EXPECT_EQ(times(Input, 4096, 4096, 256), 8);
  EXPECT_EQ(times(Weight, 256, 4096, 4096), 8);
  EXPECT_EQ(times(Forward, 4096, 7168, 4096), 4);
  EXPECT_EQ(times(Weight, 4096, 3584, 4096), 4);
  EXPECT_EQ(times(Input, 4096, 4096, 32064), 1);
  // q, k or v, projection, up, down, head: three passes each; attention both ways.
  EXPECT_EQ(products().size(), 6U * 3 + 2);
}

TEST_F(OwnKernels, MeasuredTimesGoIntoTheStepAsOftenAsTheyRun) {
  const auto forward = [&] {
    Nanoseconds sum{0};
    for (const Layer& layer : mesh_layers(run, network).layers.layers)
      sum += layer.times.front().forward;
    return sum;
  };
  const ProductShape down{ProductOperator::Product, ProductPass::Forward, 1, 4096, 4096, 3584};
  network.device.measured_products.rows = {{"bf16", down, 1e-3}};
  const Nanoseconds slow = forward();
  network.device.measured_products.rows = {{"bf16", down, 0.5e-3}};
  EXPECT_EQ(slow - forward(), Nanoseconds{4 * 500'000});
  EXPECT_THAT(coverage_text(products()), ::testing::HasSubstr(" 4 as measured, 0 interpolated"));
}

// 1024 + 2 x 256 columns.
TEST_F(OwnKernels, MegatronMakesQueryKeyAndValueByOneProduct) {
  run.kernels = RankKernels::Megatron;
  EXPECT_EQ(times(ProductPass::Forward, 4096, 1536, 4096), 4);
  EXPECT_EQ(times(ProductPass::Forward, 4096, 256, 4096), 0);
}

// 16 bytes of each element at 0.85 of 7,700 GB/s.
TEST_F(OwnKernels, GradientsThatAreZeroedTestedAndScaledTakeTimeOnceAStep) {
  const auto update = [&] {
    Nanoseconds sum{0};
    std::int64_t elements = 0;
    for (const LayerParameter& parameter : mesh_layers(run, network).layers.parameters)
      sum += parameter.optimizer.front(), elements += parameter.bytes.value / 2;
    return std::pair(seconds(sum), static_cast<double>(elements));
  };
  const auto [plain, elements] = update();
  run.kernels = RankKernels::Megatron;
  EXPECT_NEAR(update().first - plain, 16 * elements / (0.85 * 7700e9), 1e-7);
}

// Weights of q, k and v 1536 x 4096, projection 4096 x 1024, up 7168 x 4096, down 4096 x 3584, in 2
// bytes.
TEST_F(OwnKernels, PlaceholdersAreHeldOnceForEachShapeOfWeights) {
  EXPECT_EQ(mesh_layers(run, network).placeholders, Bytes{0});
  run.kernels = RankKernels::Megatron;
  MeshLayers pieces = mesh_layers(run, network);
  const Bytes held{std::int64_t{2} * 4096 * (1536 + 1024 + 7168 + 3584)}, with = peak();
  EXPECT_EQ(pieces.placeholders, held);
  pieces.placeholders = Bytes{0};
  EXPECT_EQ(with - price_mesh(run, pieces, network).plan.peak_memory.front(), held);
}

// 4,096 tokens of 32,064 words: 16 bits in place of an fp32 log-softmax, and no labels (8 bytes
// each, and 4 for their weight).
TEST_F(OwnKernels, AFusedCrossEntropyKeepsLogitsAlone) {
  const auto kept = [&] {
    const Layers layers = mesh_layers(run, network).layers;
    Bytes sum = layers.layers.back().saved;
    for (const LayerStorage& storage : layers.storages)
      if (storage.savers.back().index() + 1 == layers.size()) sum += storage.bytes;
    return sum;
  };
  const Bytes plain = kept(), plain_peak = peak();
  run.kernels = RankKernels::Megatron;
  EXPECT_EQ((plain - kept()).value, std::int64_t{4096} * (32064 * (4 - 2) + 8) + 4);
  EXPECT_LT(peak(), plain_peak);
}

}  // namespace
}  // namespace pfeife
