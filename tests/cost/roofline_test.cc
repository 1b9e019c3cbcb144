// Times of operators on a device made for the purpose, derived by hand.
#include "planner/cost/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/ir/error.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::linear_graph;
using testing::Start;

/// 1 TB/s at 50 %, 10 TFLOP/s fp32, 100 tf32, products of any size at half of it, 1 us a kernel.
DeviceKind device() {
  DeviceKind kind;
  kind.name = "test";
  kind.memory_bandwidth = {1e12};
  kind.memory_efficiency = 0.5;
  kind.peak = {{"fp32", {1e13}}, {"tf32", {1e14}}};
  kind.gemm_efficiency = {{"fp32", {{{Flops{1}, 0.5}}}}};
  kind.kernel_overhead = Nanoseconds{1000};
  return kind;
}
Profile profile(const Graph& graph, Precision precision, Optimizer optimizer = Optimizer::Adam) {
  return roofline_profile(graph, device(), {precision, optimizer, graph.microbatch_size});
}

// y [1000, 1000] = x w^T: 2e9 FLOP at 5 TFLOP/s = 400 us, or at 50 TFLOP/s 40 us; 12 MB at 0.5
// TB/s = 24 us, less than either.
TEST(Roofline, ProductsAreBoundByComputeAtTheirPrecision) {
  const Graph graph = linear_graph(1000, 1000, 1000).graph;
  EXPECT_EQ(profile(graph, Precision::Fp32).nodes[1].forward, Nanoseconds{401'000});
  EXPECT_EQ(profile(graph, Precision::Tf32).nodes[1].forward, Nanoseconds{41'000});
  EXPECT_EQ(profile(graph, Precision::Tf32).nodes[1].backward_input, Nanoseconds{41'000});
  // W: 41 us; dw added (12 MB: 24 us), db summed (4.004 MB: 8.008 us) and added (0.024 us), and
  // three more kernels.
  EXPECT_EQ(profile(graph, Precision::Tf32).nodes[1].backward_weight,
            Nanoseconds{41'000 + 25'000 + 9'008 + 1'024});
}

TEST(Roofline, OtherWorkIsBoundByMemory) {
  Start g(dense({1000, 1000}));
  g.call("y", "gelu", {{"self", g.x}}, dense({1000, 1000}));
  const Profile costs = profile(g.build(), Precision::Tf32);
  EXPECT_EQ(costs.nodes[1].forward, Nanoseconds{16'000 + 1000});         // 8 MB
  EXPECT_EQ(costs.nodes[1].backward_input, Nanoseconds{24'000 + 1000});  // 12 MB
  EXPECT_EQ(costs.nodes[1].backward_weight, Nanoseconds{0});
}

// One million parameters at 0.5 TB/s.
TEST(Roofline, OptimizerTimeIsTrafficOverBandwidth) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({1000})), w = g.parameter("w", dense({1000, 1000})),
                frozen = g.parameter("frozen", dense({1000}), false);
  const ValueId y = g.call("y", "mul", {{"self", x}, {"other", w}}, dense({1000, 1000}));
  g.call("z", "mul", {{"self", y}, {"other", frozen}}, dense({1000, 1000}));
  const Graph graph = g.build();
  for (const auto& [optimizer, us, state] : {std::tuple{Optimizer::Sgd, 24, 0},
                                             {Optimizer::Momentum, 64, 4'000'000},
                                             {Optimizer::Adam, 160, 8'000'000},
                                             {Optimizer::AdamW, 176, 8'000'000}}) {
    const Profile costs = profile(graph, Precision::Fp32, optimizer);
    EXPECT_EQ(costs.parameters[0].optimizer, Nanoseconds{us * 1000}) << to_string(optimizer);
    EXPECT_EQ(costs.parameters[0].state, Bytes{state}) << to_string(optimizer);
    EXPECT_EQ(costs.parameters[1], ParameterProfile{});
  }
}

TEST(Roofline, UnknownOperatorsAndMissingPeaksAreNamed) {
  Start g(dense({4}));
  const ValueId y = g.call("y", "no_such_operator", {{"self", g.x}}, dense({4}));
  g.call("z", "no_such_operator", {{"self", y}}, dense({4}));
  const Graph graph = g.build();
  EXPECT_THAT(profile(graph, Precision::Tf32).warnings,
              ElementsAre(HasSubstr("aten::no_such_operator (2 nodes)")));
  EXPECT_THAT(profile(linear_graph(4, 4, 4).graph, Precision::Tf32).warnings, IsEmpty());
  EXPECT_THAT(profile(linear_graph(4, 4, 4).graph, Precision::Bf16Amp).warnings,
              ElementsAre(HasSubstr("no peak for bf16_amp: that of tf32 is used")));
  DeviceKind no_fp32 = device();
  no_fp32.peak = {{"bf16", {1e14}}};
  EXPECT_THROW(roofline_profile(linear_graph(4, 4, 4).graph, no_fp32, {}), ConfigError);
  DeviceKind no_bandwidth = device(), no_curve = device(), no_peak = device();
  no_bandwidth.memory_bandwidth = {};
  no_curve.gemm_efficiency.clear();
  no_peak.peak.clear();
  for (const DeviceKind& kind : {no_bandwidth, no_curve, no_peak})
    EXPECT_THROW(roofline_profile(linear_graph(4, 4, 4).graph, kind, {}), ConfigError);
}

}  // namespace
}  // namespace pfeife
