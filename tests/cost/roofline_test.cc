// Times of operators on a device made for the purpose, derived by hand.
#include "planner/cost/operators/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/basics/error.h"
#include "tests/cost/graph_builder.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

/// The one message that there should be.
std::string only(const std::vector<std::string>& messages) {
  EXPECT_EQ(messages.size(), 1u);
  return messages.empty() ? "" : messages.front();
}

using testing::dense;
using testing::GraphBuilder;
using ::testing::IsEmpty;
using testing::linear_graph;
using testing::Start;

/// 1 TB/s at 50 %, 10 TFLOP/s fp32, 100 tf32, products of any size at half of it, 1 us a kernel.
DeviceKind half_bandwidth_device() {
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
  return roofline_profile(graph, half_bandwidth_device(),
                          {precision, optimizer, graph.microbatch_size});
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

// x [2, 1000, 1000] by b of the same size: 4e9 FLOP at 5 TFLOP/s = 800 us. A square product of as
// many has sides of 1259.9 and moves 19.05 MB of the 24: the rest takes 9.9 us at 0.5 TB/s.
TEST(Roofline, ProductsTakeTheTimeOfTheTrafficThatASquareOneHasNot) {
  Start g(dense({2, 1000, 1000}));
  const ValueId b = g.input("b", dense({2, 1000, 1000}));
  g.call("y", "bmm", {{"self", g.x}, {"mat2", b}}, dense({2, 1000, 1000}));
  EXPECT_EQ(profile(g.build(), Precision::Fp32).nodes[1].forward, Nanoseconds{810'902});
}

MeasuredProduct measured(const ProductShape& shape, double us) { return {"fp32", shape, us / 1e6}; }

// y [600, 300] = x [600, 500] w^T: forward 600 x 300 x 500; the gradient of x 600 x 500 x 300, that
// of w 300 x 500 x 600. Their times take the place of curve and traffic; 1 us a kernel stays.
TEST(Roofline, MeasuredProductsAreFoundByTheShapeOfEachPass) {
  DeviceKind kind = half_bandwidth_device();
  using enum ProductPass;
  kind.measured_products.rows = {
      measured({.pass = Forward, .groups = 1, .m = 600, .n = 300, .k = 500}, 70),
      measured({.pass = Input, .groups = 1, .m = 600, .n = 500, .k = 300}, 80),
      measured({.pass = Weight, .groups = 1, .m = 300, .n = 500, .k = 600}, 90)};
  const Graph graph = linear_graph(600, 500, 300).graph;
  const Profile with = roofline_profile(graph, kind, {}), without = profile(graph, Precision::Fp32);
  EXPECT_EQ(with.nodes[1].forward, Nanoseconds{71'000});
  EXPECT_EQ(with.nodes[1].backward_input, Nanoseconds{81'000});
  // 18e7 FLOP at 5 TFLOP/s = 36 us by the curve, and 0.2 us of traffic; what follows the product is
  // as it was.
  const Nanoseconds longer = with.nodes[1].backward_weight - without.nodes[1].backward_weight;
  EXPECT_LE(std::abs(longer.count() - (90'000 - 36'000)), 300);
  EXPECT_EQ(with.nodes[0], without.nodes[0]);
  EXPECT_THAT(with.origin, ::testing::EndsWith("of a microbatch's 3 products 3 as measured, 0 "
                                               "interpolated between measured ones, 0 by the "
                                               "curve"));
  EXPECT_EQ(without.origin, "roofline of test in fp32");
  kind.compute_factor = 1.1;
  EXPECT_EQ(roofline_profile(graph, kind, {}).nodes[1].forward, Nanoseconds{78'100});
}

// [2, 8, 100, 64] with values of 32: 16 heads x samples, 100 queries and keys, 48 on average.
TEST(Roofline, MeasuredAttentionIsFoundByItsHeadsAndLengths) {
  DeviceKind kind = half_bandwidth_device();
  using enum ProductOperator;
  ProductShape shape{.op = CausalAttention, .pass = ProductPass::Forward, .groups = 16};
  shape.m = shape.n = 100, shape.k = 48;
  ProductShape back = shape;
  back.pass = ProductPass::Input;
  kind.measured_products.rows = {measured(shape, 5), measured(back, 11)};
  Start g(dense({2, 8, 100, 64}));
  const ValueId v = g.input("v", dense({2, 8, 100, 32}));
  g.call("y", "scaled_dot_product_attention",
         {{"query", g.x}, {"key", g.x}, {"value", v}, {"is_causal", true}}, dense({2, 8, 100, 32}));
  const NodeProfile cost = roofline_profile(g.build(), kind, {}).nodes[1];
  EXPECT_EQ(cost.forward, Nanoseconds{6'000});
  EXPECT_EQ(cost.backward_input.count() / 1000, 12);
}

// [1, 2, 1000, 500]: 2 x 2 x 2 x 1000 x 1000 x 500 = 4e9 FLOP at 0.45 of 5 TFLOP/s; a causal mask
// hides half of them.
TEST(Roofline, FusedAttentionPassesOverWhatACausalMaskHides) {
  for (const bool causal : {false, true}) {
    Start g(dense({1, 2, 1000, 500}));
    g.call("y", "scaled_dot_product_attention",
           {{"query", g.x}, {"key", g.x}, {"value", g.x}, {"is_causal", causal}},
           dense({1, 2, 1000, 500}));
    const NodeProfile cost = profile(g.build(), Precision::Fp32).nodes[1];
    const double forward = 4e9 / (0.45 * 5e12) / (causal ? 2 : 1);
    EXPECT_EQ(cost.forward, nanoseconds_from_seconds(forward) + Nanoseconds{1000});
    EXPECT_EQ(cost.backward_input.count() / 1000,
              (nanoseconds_from_seconds(2.5 * forward) + Nanoseconds{1000}).count() / 1000);
  }
}

// [1, 2, s, 500] in 16 bits: 2 x 2 x 2 x s x s x 500 FLOP, half of them hidden, at 0.5 of 100
// TFLOP/s forward and 2.5 as many at 0.4 backward; with s 1024 at (1024 / 4096)^0.35 = 0.6156 of
// that. Another type's kernel is not the named one: 0.9 of the half of 10 TFLOP/s that its products
// reach.
TEST(Roofline, FusedAttentionReachesTheShareOfThePeakThatItsKernelHas) {
  DeviceKind kind = half_bandwidth_device();
  kind.peak["bf16"] = {1e14};
  kind.attention = {"Flash", 0.5, 0.4};
  const auto forward_and_backward = [&](std::int64_t length, DType type) {
    Start g(dense({1, 2, length, 500}, type));
    g.call("y", "scaled_dot_product_attention",
           {{"query", g.x}, {"key", g.x}, {"value", g.x}, {"is_causal", true}},
           dense({1, 2, length, 500}, type));
    const NodeProfile cost =
        roofline_profile(g.build(), kind, {Precision::Fp32, Optimizer::Adam, 1}).nodes[1];
    return std::pair(1e6 * seconds(cost.forward) - 1, 1e6 * seconds(cost.backward_input) - 1);
  };
  const auto [long_forward, long_backward] = forward_and_backward(8192, DType::BFloat16);
  EXPECT_NEAR(long_forward, 2684.4, 1);  // 1.342e11 FLOP at 50 TFLOP/s
  EXPECT_NEAR(long_backward, 8388.6, 1);
  const auto [short_forward, short_backward] = forward_and_backward(1024, DType::BFloat16);
  EXPECT_NEAR(short_forward, 41.94 / 0.6156, 0.1);
  EXPECT_NEAR(short_backward, 131.07 / 0.6156, 0.2);
  EXPECT_NEAR(forward_and_backward(8192, DType::Float32).first, 2.684e11 / 4.5e6, 50);
}

/// Seconds that a product of `batch` matrices, [rows, inner] by [inner, columns], takes on one
/// A100-SXM4-40GB in fp16.
double product_seconds(std::int64_t batch, std::int64_t rows, std::int64_t inner,
                       std::int64_t columns) {
  const auto half = [&](std::int64_t a, std::int64_t b) {
    return batch == 1 ? dense({a, b}, DType::Float16) : dense({batch, a, b}, DType::Float16);
  };
  GraphBuilder g;
  const ValueId a = g.input("a", half(rows, inner)), b = g.input("b", half(inner, columns));
  g.call("y", batch == 1 ? "mm" : "bmm", {{"self", a}, {"mat2", b}}, half(rows, columns));
  const Graph graph = g.build();
  static const Cluster cluster =
      read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/a100_sxm4_40gb_x8.yaml");
  const Profile costs = roofline_profile(graph, cluster.kinds.front(),
                                         {Precision::Fp32, Optimizer::Sgd, graph.microbatch_size});
  return seconds(costs.nodes.back().forward);
}

// Products of GPT's layers with 8192 tokens of 4 sequences, 64 heads and tp 4: TFLOP/s of query,
// key and value, of the projection, of the feed-forward layer, and in batches of scores and
// context. The slowest of 200 runs on an A100 (github.com/EleutherAI/cookbook, sizing/results/
// transformer_data/h_sweep.out: hidden sizes that 1024 divides). The curve's last point is the mean
// of 39 of them; projections have a quarter of the terms, batches a fiftieth to a hundredth.
TEST(Roofline, ProductsOfTransformerLayersTakeAboutAsLongAsMeasured) {
  const double measured[][7] = {{8192, 228.497, 216.633, 253.989, 257.478, 91.589, 134.750},
                                {9216, 259.962, 216.526, 254.332, 252.560, 93.312, 127.111},
                                {10240, 244.750, 163.263, 228.240, 231.050, 103.680, 139.269},
                                {11264, 235.131, 220.176, 229.133, 232.073, 104.212, 151.555},
                                {12288, 247.369, 225.630, 244.482, 256.922, 114.075, 165.270},
                                {13312, 229.060, 227.655, 248.059, 250.648, 113.960, 173.923},
                                {14336, 250.876, 230.066, 250.626, 247.192, 72.212, 186.264},
                                {15360, 248.102, 232.371, 251.352, 253.331, 122.270, 196.735},
                                {16384, 254.982, 235.892, 252.879, 251.998, 128.216, 157.460},
                                {17408, 249.393, 249.756, 252.723, 254.397, 106.761, 136.018},
                                {18432, 252.958, 254.066, 255.641, 253.443, 135.108, 137.777},
                                {19456, 246.318, 249.854, 253.021, 250.487, 98.510, 149.824},
                                {20480, 254.936, 248.603, 251.697, 252.369, 141.041, 104.872}};
  std::vector<double> single, batches;  // estimated over measured time
  for (const auto& row : measured) {
    const auto hidden = static_cast<std::int64_t>(row[0]), head = hidden / 64;
    const auto add = [&](std::vector<double>& to, double tflops, std::int64_t batch,
                         std::int64_t rows, std::int64_t inner, std::int64_t columns) {
      const double flops = 2.0 * static_cast<double>(batch * rows) * static_cast<double>(inner) *
                           static_cast<double>(columns);
      to.push_back(product_seconds(batch, rows, inner, columns) / (flops / (1e12 * tflops)));
    };
    add(single, row[1], 1, 8192, hidden, 3 * hidden / 4);
    add(single, row[2], 1, 8192, hidden / 4, hidden);
    add(single, row[3], 1, 8192, hidden, hidden);
    add(single, row[4], 1, 8192, hidden, hidden);
    add(batches, row[5], 64, 2048, head, 2048);
    add(batches, row[6], 64, 2048, 2048, head);
  }
  for (auto* list : {&single, &batches}) std::ranges::sort(*list);
  EXPECT_NEAR(single[single.size() / 2], 1, 0.03);
  EXPECT_NEAR(batches[batches.size() / 2], 1, 0.10);
  std::size_t far = 0;
  for (const double ratio : single) far += std::abs(ratio - 1) > 0.15 ? 1 : 0;
  EXPECT_EQ(far, 1u);  // the projection of hidden size 10,240
}

/// Attention of `heads` with `rows` queries and keys of `size` numbers as three operators, of which
/// the first has gradients: forward and backward in microseconds on one A100-40GB.
std::pair<double, double> plain_attention(std::int64_t heads, std::int64_t rows,
                                          std::int64_t size) {
  const auto half = [](std::vector<std::int64_t> sizes) {
    return dense(std::move(sizes), DType::Float16);
  };
  GraphBuilder g;
  const ValueId query = g.parameter("query", half({heads, rows, size})),
                key = g.parameter("key", half({heads, size, rows})),
                value = g.parameter("value", half({heads, rows, size}));
  const ValueId scores =
      g.call("scores", "bmm", {{"self", query}, {"mat2", key}}, half({heads, rows, rows}));
  const ValueId parts = g.call("parts", "softmax", {{"self", scores}, {"dim", std::int64_t{-1}}},
                               half({heads, rows, rows}));
  g.call("y", "bmm", {{"self", parts}, {"mat2", value}}, half({heads, rows, size}));
  const Graph graph = g.build();
  DeviceKind kind =
      read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/a100_sxm4_80gb_hosts.yaml").kinds.front();
  kind.memory_bandwidth = {1.555e12};  // of the card with 40 GB, the same otherwise
  const Profile costs =
      roofline_profile(graph, kind, {Precision::Fp32, Optimizer::Sgd, graph.microbatch_size});
  Nanoseconds forward{0}, backward{0};
  for (const NodeProfile& node : costs.nodes) {
    forward += node.forward;
    backward += node.backward_input + node.backward_weight;
  }
  return {1e6 * seconds(forward), 1e6 * seconds(backward)};
}

// Measured by others on an A100: github.com/facebookresearch/xformers, pull requests 405 and 412
// (column "vanilla", fp16, no dropout, no mask). Backward misses that a softmax over more than 1024
// elements reads its operands twice.
TEST(Roofline, PlainAttentionTakesAboutAsLongAsMeasured) {
  for (const auto& [heads, rows, size, measured] :
       {std::tuple{1024, 1024, 16, 7048.9}, std::tuple{1024, 1024, 32, 7191.8},
        std::tuple{1024, 1024, 64, 7710.1}, std::tuple{16, 4096, 40, 1940.7},
        std::tuple{160, 4096, 128, 20670.4}})
    EXPECT_NEAR(plain_attention(heads, rows, size).first / measured, 1, 0.08)
        << heads << " x " << rows << " x " << size;
  EXPECT_NEAR(plain_attention(160, 4096, 128).second / 43797.2, 1, 0.10);
  EXPECT_NEAR(plain_attention(16, 4096, 40).second / 4128.9, 1, 0.25);
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
  // 8-bit Adam: a scale of 4 bytes for each of 3,907 blocks and two moments; 12 + 2 x 2.031256 MB.
  // Adafactor: 2,000 sums; 12 + 2 x 0.008 MB, and the gradient twice more, 8 MB.
  for (const auto& [optimizer, ns, state] : {std::tuple{Optimizer::Sgd, 24'000, 0},
                                             {Optimizer::Momentum, 64'000, 4'000'000},
                                             {Optimizer::MomentumBf16, 32'000, 2'000'000},
                                             {Optimizer::Adam, 160'000, 8'000'000},
                                             {Optimizer::AdamW, 176'000, 8'000'000},
                                             {Optimizer::Adam8Bit, 32'125, 2'031'256},
                                             {Optimizer::Adafactor, 40'032, 8'000},
                                             {Optimizer::Lion, 40'000, 4'000'000}}) {
    const Profile costs = profile(graph, Precision::Fp32, optimizer);
    EXPECT_EQ(costs.parameters[0].optimizer, Nanoseconds{ns}) << to_string(optimizer);
    EXPECT_EQ(costs.parameters[0].state, Bytes{state}) << to_string(optimizer);
    EXPECT_EQ(costs.parameters[1], ParameterProfile{});
  }
}

// Adam moves 80 B a parameter; scaled gradients are read and written once more (8 B).
TEST(Roofline, ScaledGradientsAreUnscaledBeforeTheStep) {
  const Graph graph = linear_graph(4, 1000, 1000).graph;
  EXPECT_EQ(profile(graph, Precision::Bf16Amp).parameters[1].optimizer, Nanoseconds{160'000});
  EXPECT_EQ(profile(graph, Precision::Fp16Amp).parameters[1].optimizer, Nanoseconds{176'000});
}

// 2e9 FLOP at the type's own peak and at its own share of it: fp32 10 TFLOP/s at 0.5, tf32 100 at
// 0.25, bf16 200 at 0.1, fp16 400 at 0.2. Halves are cast: their time is that of the product and of
// what else is there.
TEST(Roofline, EachTypeHasItsPeakAndItsCurve) {
  DeviceKind kind = half_bandwidth_device();
  kind.peak = {{"fp32", {1e13}}, {"tf32", {1e14}}, {"bf16", {2e14}}, {"fp16", {4e14}}};
  for (const auto& [type, share] :
       {std::pair{"fp32", 0.5}, {"tf32", 0.25}, {"bf16", 0.1}, {"fp16", 0.2}})
    kind.gemm_efficiency[type] = {{{Flops{1}, share}}};
  const Graph graph = linear_graph(1000, 1000, 1000).graph;
  const auto forward = [&](Precision precision) {
    return roofline_profile(graph, kind, {precision, Optimizer::Adam, 1}).nodes[1].forward;
  };
  EXPECT_EQ(forward(Precision::Fp32), Nanoseconds{400'000 + 1000});
  EXPECT_EQ(forward(Precision::Tf32), Nanoseconds{80'000 + 1000});
  // The same casts: what differs is 100 us against 25.
  EXPECT_EQ(forward(Precision::Bf16Amp) - forward(Precision::Fp16Amp), Nanoseconds{75'000});
}

// A peak without a curve takes that of the nearest precision: bf16 of 200 TFLOP/s without its own
// reaches 0.04 of it as fp16 does, then 0.05 as tf32, and only in the end 0.1 as fp32. 2e9 FLOP
// take 10 us at all of that peak. The casts beside the product cost the same whatever it reaches:
// what is compared is the product at 0.02, less.
TEST(Roofline, APeakWithoutACurveTakesThatOfTheNearestPrecision) {
  DeviceKind kind = half_bandwidth_device();
  kind.peak = {{"fp32", {1e13}}, {"tf32", {1e14}}, {"bf16", {2e14}}, {"fp16", {4e14}}};
  DeviceKind slow = kind;
  slow.gemm_efficiency = {{"fp16", {{{Flops{1}, 0.02}}}}};
  for (const auto& [type, share] : {std::pair{"fp32", 0.1}, {"tf32", 0.05}, {"fp16", 0.04}})
    kind.gemm_efficiency[type] = {{{Flops{1}, share}}};
  const Graph graph = linear_graph(1000, 1000, 1000).graph;
  const auto saves = [&](Precision precision) {
    const Training training{precision, Optimizer::Adam, 1};
    return roofline_profile(graph, slow, training).nodes[1].forward -
           roofline_profile(graph, kind, training).nodes[1].forward;
  };
  EXPECT_EQ(saves(Precision::Bf16Amp), Nanoseconds{10'000 * (50 - 25)});
  kind.gemm_efficiency.erase("fp16");
  EXPECT_EQ(saves(Precision::Bf16Amp), Nanoseconds{10'000 * (50 - 20)});
  EXPECT_EQ(saves(Precision::Fp16Amp), Nanoseconds{5'000 * (50 - 20)});
  kind.gemm_efficiency.erase("tf32");
  EXPECT_EQ(saves(Precision::Bf16Amp), Nanoseconds{10'000 * (50 - 10)});
  EXPECT_EQ(saves(Precision::Tf32), Nanoseconds{20'000 * (50 - 10)});
}

// 2 * 1024^3 = 2.147e9 FLOP at 10 TFLOP/s are 214.7 us, at 31 % of it (configs/clusters/README.md;
// a little more, as the product is a little larger than 2.1 GFLOP) less than 214.7 / 0.309 us.
TEST(Roofline, ADeviceWithoutAnyCurveHasTheDefaultAndSaysSo) {
  DeviceKind kind = half_bandwidth_device();
  kind.gemm_efficiency.clear();
  const Profile costs = roofline_profile(linear_graph(1024, 1024, 1024).graph, kind,
                                         {Precision::Fp32, Optimizer::Adam, 1});
  EXPECT_LT(costs.nodes[1].forward, Nanoseconds{694'000 + 1000 + 1000});
  EXPECT_GT(costs.nodes[1].forward, Nanoseconds{680'000});
  EXPECT_MESSAGE(only(costs.warnings));
}

// gelu needs x [4, 8] and keeps it; nothing else lives beside y: 128 B. On the way back the
// gradients of both.
TEST(Roofline, ProfilesSayWhatLivesWhileANodeRuns) {
  Start g(dense({4, 8}));
  g.call("y", "gelu", {{"self", g.x}}, dense({4, 8}));
  const PassBytes& temporary = profile(g.build(), Precision::Fp32).nodes[1].temporary;
  EXPECT_EQ(temporary.forward, Bytes{128});
  EXPECT_EQ(temporary.input, Bytes{256});
}

TEST(Roofline, UnknownOperatorsAndMissingPeaksAreNamed) {
  Start g(dense({4}));
  const ValueId y = g.call("y", "no_such_operator", {{"self", g.x}}, dense({4}));
  g.call("z", "no_such_operator", {{"self", y}}, dense({4}));
  const Graph graph = g.build();
  EXPECT_MESSAGE(only(profile(graph, Precision::Tf32).warnings));
  EXPECT_THAT(profile(linear_graph(4, 4, 4).graph, Precision::Tf32).warnings, IsEmpty());
  EXPECT_MESSAGE(only(profile(linear_graph(4, 4, 4).graph, Precision::Bf16Amp).warnings));
  EXPECT_MESSAGE(only(profile(linear_graph(4, 4, 4).graph, Precision::Fp16Amp).warnings));
  DeviceKind no_fp32 = half_bandwidth_device();
  no_fp32.peak = {{"bf16", {1e14}}};
  EXPECT_THROW(roofline_profile(linear_graph(4, 4, 4).graph, no_fp32, {}), ConfigError);
  DeviceKind no_bandwidth = half_bandwidth_device(), no_peak = half_bandwidth_device();
  no_bandwidth.memory_bandwidth = {};
  no_peak.peak.clear();
  for (const DeviceKind& kind : {no_bandwidth, no_peak})
    EXPECT_THROW(roofline_profile(linear_graph(4, 4, 4).graph, kind, {}), ConfigError);
}

}  // namespace
}  // namespace pfeife
