// Products of experts as a kernel each, against the same work by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_layers.h"
#include "tests/mesh/configs.h"

namespace pfeife {
namespace {

Nanoseconds forward(const MeshRun& run, const Network& network) {
  Nanoseconds sum{0};
  for (const Layer& layer : rank_layers(run, network).layers.layers)
    sum += layer.times.front().forward;
  return sum;
}

// Qwen3-30B-A3B on eight devices, 16 experts on each: 4,096 x 8 copies of tokens through products
// of 2048 x 1536 (gate and rest) and 768 x 2048. Four experts at a time have a quarter of the work
// and reach what one product of that size does; twelve more kernels are launched each time.
TEST(ExpertProducts, AKernelAnExpertHasTheEfficiencyOfFourAndItsOwnLaunch) {
  const Network network = read_network(kConfigs / "clusters/b200_sxm_hosts.yaml");
  MeshRun run{.architecture = read_architecture(kConfigs / "architectures/qwen3_30b_a3b.yaml")};
  run.architecture.sequence = 4096;
  run.architecture.layers = 2;
  run.type = DType::BFloat16;
  run.mesh.size(Axis::Data) = run.mesh.experts = run.global_batch = 8;
  const DeviceKind& device = network.device;
  const double launch = seconds(device.operator_time());
  const auto time = [&](double flops, double bytes) {
    const double side = std::cbrt(flops / 2), more = bytes - 3 * side * side * 2;
    return flops /
               (device.gemm_efficiency.at("bf16").at(Flops{flops}) * device.peak_of("bf16").value) +
           std::max(more, 0.0) / device.element_wise_rate().value + launch;
  };
  double expected = 0;
  for (const auto& [in, out] : {std::pair(2048.0, 1536.0), std::pair(768.0, 2048.0)}) {
    const double copies = 4096 * 8, flops = 2 * copies * in * out,
                 bytes = 2 * (copies * (in + out) + 16 * in * out);
    expected += 4 * time(flops / 4, bytes / 4) + 12 * launch - time(flops, bytes);
  }
  MeshRun separate = run;
  separate.separate_experts = true;
  const double more = seconds(forward(separate, network) - forward(run, network));
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(more / (2 * expected), 1, 1e-4);
}

}  // namespace
}  // namespace pfeife
