// FLOPs, bytes and kernels of operators, derived by hand.
#include "planner/cost/operators/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using testing::GraphBuilder;
using testing::linear_graph;
using testing::Sizes;
using testing::Start;
using testing::strided;

struct Sum {
  double flops = 0;
  std::int64_t bytes = 0;
  int kernels = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};
void PrintTo(const Sum& sum, std::ostream* out) {
  *out << sum.flops << " FLOP, " << sum.bytes << " B, " << sum.kernels << " kernels";
}

/// The kernels of a node, added up.
Sum at(const Graph& graph, NodeId node, Pass pass, Precision precision = Precision::Fp32,
       DeviceType device = DeviceType::Gpu) {
  const GraphFacts facts(graph, precision);
  const SavedMemory saved = saved_memory(facts, device);
  Sum sum;
  for (const Kernel& kernel : KernelList(facts, saved, device).at(node))
    if (kernel.pass == pass) {
      sum.flops += static_cast<double>(kernel.times) * kernel.flops.value;
      sum.bytes += kernel.times * kernel.bytes.value;
      sum.kernels += static_cast<int>(kernel.times);
    }
  return sum;
}
/// The work of the last node.
Sum last(const Graph& graph, Pass pass, Precision precision = Precision::Fp32,
         DeviceType device = DeviceType::Gpu) {
  return at(graph, nodes_of(graph).back(), pass, precision, device);
}

// y [10, 6] = x [10, 4] w^T [4, 6] + b. One product: 2 x 10 x 6 x 4 = 480 FLOP over x, w, y =
// 160 + 96 + 240 B. I: the same once (dx from dy and w). W: the same (dw from dy and x), dw and db
// added to their sums (3 x 96 and 3 x 24 B), and db itself (dy read, b written).
TEST(Work, LinearByHand) {
  const Graph graph = linear_graph(10, 4, 6).graph;
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{480, 496, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{480, 496, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardWeight), (Sum{480, 496 + 3 * 96 + (240 + 24) + 3 * 24, 4}));
}

TEST(Work, LinearWithoutGradientOfItsInputHasNoI) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({10, 4})), w = g.parameter("w", dense({6, 4}));
  g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({10, 6}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::BackwardInput), Sum{});
  EXPECT_EQ(last(graph, Pass::BackwardWeight).kernels, 2);
}

// addmm(b, x, w): as linear, the weight the other way round.
TEST(Work, AddmmCountsAsLinear) {
  Start g(dense({10, 4}));
  const ValueId w = g.parameter("w", dense({4, 6})), b = g.parameter("b", dense({6}));
  g.call("y", "addmm", {{"self", b}, {"mat1", g.x}, {"mat2", w}}, dense({10, 6}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{480, 496, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardWeight).kernels, 4);
}

// 2 images, 3 -> 8 channels, 3 x 3 window, output 6 x 6: 2 x (2 x 8 x 36) x 27 FLOP. In two
// groups each output sees half the channels, and the weight says so.
TEST(Work, ConvolutionByHand) {
  for (const std::int64_t seen : {4, 2}) {
    Start g(dense({2, 4, 8, 8}));
    const ValueId w = g.parameter("w", dense({8, seen, 3, 3}));
    g.call("y", "conv2d", {{"input", g.x}, {"weight", w}, {"groups", 4 / seen}},
           dense({2, 8, 6, 6}));
    const Graph graph = g.build();
    const double flops = 2.0 * (2 * 8 * 36) * static_cast<double>(seen * 9);
    const std::int64_t moved = 4 * (2 * 4 * 64 + 8 * seen * 9 + 2 * 8 * 36);
    EXPECT_EQ(last(graph, Pass::Forward), (Sum{flops, moved, 1}));
    EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{flops, moved, 1}));
    EXPECT_EQ(last(graph, Pass::BackwardWeight), (Sum{flops, moved + 3 * 4 * 8 * seen * 9, 2}));
  }
}

// 2 images of 4 channels, 8 x 8; each of its 512 numbers is multiplied by a window of 5 x 3 x 3.
TEST(Work, TransposedConvolutionsMultiplyTheirInput) {
  Start g(dense({2, 4, 8, 8}));
  const ValueId w = g.parameter("w", dense({4, 5, 3, 3}));
  g.call("y", "conv_transpose2d", {{"input", g.x}, {"weight", w}}, dense({2, 5, 10, 10}));
  const Graph graph = g.build();
  const double flops = 2.0 * 512 * 45;
  EXPECT_DOUBLE_EQ(last(graph, Pass::Forward).flops, flops);
  EXPECT_DOUBLE_EQ(last(graph, Pass::BackwardInput).flops, 2 * flops);
  EXPECT_EQ(last(graph, Pass::BackwardWeight), Sum{});
}

// 6 tokens of 4 numbers, sorted by expert; each meets the one matrix [4, 5] of its expert.
TEST(Work, GroupedProductsMultiplyEachRowOnce) {
  for (const std::string op : {"_grouped_mm", "transformers::grouped_mm_fallback"}) {
    Start g(dense({6, 4}));
    const ValueId w = g.parameter("w", dense({3, 4, 5}));
    const bool aten = op == "_grouped_mm";
    g.call("y", op, {{aten ? "self" : "input", g.x}, {aten ? "mat2" : "weight", w}}, dense({6, 5}));
    Graph graph = g.build();
    if (!aten) graph.nodes.back().op = op;
    EXPECT_EQ(last(graph, Pass::Forward).flops, 2 * 6 * 4 * 5) << op;
    // One product each for the rows (in I) and the matrices (in W), whose gradient is added up.
    EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{240, 4 * (24 + 60 + 30), 1})) << op;
    EXPECT_EQ(last(graph, Pass::BackwardWeight), (Sum{240, 4 * (24 + 60 + 30) + 3 * 240, 2})) << op;
  }
}

// The gradient of the matrices: what is grouped is the sum, [4, 6] x [6, 5] to a [4, 5] for each of
// 3 groups, so that every one of the 6 terms is in one group: 2 x 4 x 6 x 5.
TEST(Work, GroupedProductsMaySumOverWhatIsGrouped) {
  Start g(dense({4, 6}));
  const ValueId gradient = g.input("gradient", dense({6, 5}));
  g.call("y", "_grouped_mm", {{"self", g.x}, {"mat2", gradient}}, dense({3, 4, 5}));
  EXPECT_EQ(last(g.build(), Pass::Forward).flops, 2 * 4 * 6 * 5);
}

// The experts' matrices as torch has them, [3, 5, 4], transposed before the product: W has the
// product, and with the view the sum over the microbatches. Read twice, the view's gradient is one
// of two that I must add.
TEST(Work, GroupedProductsOfATransposedParameterLeaveItToW) {
  for (const bool twice : {false, true}) {
    Start g(dense({6, 4}));
    const ValueId w = g.parameter("w", dense({3, 5, 4}));
    const ValueId turned = g.call(
        "turned", "transpose", {{"self", w}, {"dim0", std::int64_t{1}}, {"dim1", std::int64_t{2}}},
        strided({3, 4, 5}, {20, 1, 4}));
    if (twice) g.call("again", "neg", {{"self", turned}}, dense({3, 4, 5}));
    g.call("y", "_grouped_mm", {{"self", g.x}, {"mat2", turned}}, dense({6, 5}));
    const Graph graph = g.build();
    EXPECT_EQ(last(graph, Pass::BackwardWeight).flops, twice ? 0 : 240);
    EXPECT_EQ(at(graph, NodeId{1}, Pass::BackwardWeight), twice ? Sum{} : (Sum{0, 3 * 240, 1}));
    EXPECT_EQ(at(graph, NodeId{1}, Pass::BackwardInput), twice ? (Sum{0, 3 * 240, 1}) : Sum{});
  }
}

// The sum of a, [2, 3, 5] x [2, 5, 7]; a frozen, so the backward is one product for each factor.
TEST(Work, OtherProductsCountTheTermsOfTheirSums) {
  Start g(dense({2, 3, 5}));
  const ValueId a = g.input("a", dense({2, 3, 7}));
  const ValueId b = g.parameter("b", dense({2, 5, 7}));
  g.call("y", "baddbmm", {{"self", a}, {"batch1", g.x}, {"batch2", b}}, dense({2, 3, 7}));
  EXPECT_EQ(last(g.build(), Pass::Forward).flops, 2 * 42 * 5);
  EXPECT_EQ(last(g.build(), Pass::BackwardInput).flops, 2 * 2 * 42 * 5);
  Start h(dense({2, 3, 5}));
  const ValueId c = h.parameter("c", dense({2, 5, 7})), d = h.input("d", dense({3, 7}));
  h.call("y", "addbmm", {{"self", d}, {"batch1", h.x}, {"batch2", c}}, dense({3, 7}));
  EXPECT_EQ(last(h.build(), Pass::Forward).flops, 2 * 21 * (2 * 5));
  Start t(dense({2, 3, 5}));
  const ValueId e = t.parameter("e", dense({3, 5, 7}));
  t.call("y", "tensordot",
         {{"self", t.x}, {"other", e}, {"dims_self", Sizes{-2, -1}}, {"dims_other", Sizes{0, 1}}},
         dense({2, 7}));
  EXPECT_EQ(last(t.build(), Pass::Forward).flops, 2 * 14 * 15);
}

// "bti,hio->bhto": [2, 3, 5] and [4, 5, 6] to [2, 4, 3, 6], 144 sums of 5 terms. The weight is laid
// out anew (read, written: 2 x 480 B). Backward: the product once for each, the weight's and its
// sum in W.
TEST(Work, EinsumIsTheProductThatItMakes) {
  Start g(dense({2, 3, 5}));
  const ValueId w = g.parameter("w", dense({4, 5, 6}));
  g.call("y", "einsum",
         {{"equation", std::string("bti,hio->bhto")}, {"tensors", std::vector<ValueId>{g.x, w}}},
         dense({2, 4, 3, 6}));
  const Graph graph = g.build();
  const std::int64_t moved = 4 * (30 + 120 + 144);
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{1440, moved + 2 * 480, 2}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{1440, moved, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardWeight), (Sum{1440, moved + 3 * 480, 2}));
}

// Three operands are two products, of which the second has the first one's result: all in I.
TEST(Work, EinsumsOfThreeLeaveNothingToW) {
  Start g(dense({2, 3}));
  const ValueId v = g.parameter("v", dense({3, 4})), w = g.parameter("w", dense({4, 5}));
  g.call("y", "einsum",
         {{"equation", std::string("bi,ij,jk->bk")}, {"tensors", std::vector<ValueId>{g.x, v, w}}},
         dense({2, 5}));
  EXPECT_EQ(last(g.build(), Pass::BackwardInput).flops, 2 * (48 + 80));
  EXPECT_EQ(last(g.build(), Pass::BackwardWeight), Sum{});
}

// Two layers, 3 steps of 2 samples, 5 inputs, width 4: weights [16, 5], [16, 4], then twice
// [16, 4]. Forward: each of 6 rows meets each weight. The input needs a gradient, so backward is
// twice that. Kernels forward: of each layer one product, 3 of the hidden state, 3 for the gates.
TEST(Work, RecurrentLayersMultiplyEveryWeightInEveryStep) {
  Start g(dense({3, 2, 5}));
  std::vector<ValueId> params;
  for (const std::int64_t inputs : {5, 4})
    for (const Sizes& sizes : {Sizes{16, inputs}, Sizes{16, 4}, Sizes{16}, Sizes{16}})
      params.push_back(g.parameter("p" + std::to_string(params.size()), dense(sizes)));
  const ValueId zero = g.input("zero", dense({2, 2, 4}));
  g.call_many("y", "lstm",
              {{"input", g.x},
               {"hx", std::vector<ValueId>{zero, zero}},
               {"params", params},
               {"has_biases", true},
               {"num_layers", std::int64_t{2}},
               {"dropout", 0.0},
               {"train", true},
               {"bidirectional", false},
               {"batch_first", false}},
              {dense({3, 2, 4}), dense({2, 2, 4}), dense({2, 2, 4})});
  const Graph graph = g.build();
  const double flops = 2.0 * 6 * (16 * 5 + 3 * 16 * 4);
  EXPECT_EQ(last(graph, Pass::Forward).flops, flops);
  EXPECT_EQ(last(graph, Pass::Forward).kernels, 2 * (1 + 3 + 3));
  // Bytes: weights, what they read and make; gates: 4 x 4 numbers of 2 samples read and written,
  // two states.
  const std::int64_t products =
      (16 * 5 + 6 * (16 + 5)) + (16 * 4 + 6 * (16 + 4)) + 2 * 3 * (16 * 4 + 2 * (16 + 4));
  EXPECT_EQ(last(graph, Pass::Forward).bytes, 4 * (products + 2 * 3 * (2 * 4 + 2) * 2 * 4));
  // but the first step's state needs no gradient: 2 samples a layer less.
  EXPECT_EQ(last(graph, Pass::BackwardInput).flops, 2 * flops - 2 * 2.0 * 2 * 16 * 4);
}

// 3 bags of 4 rows of 8 numbers: 12 rows are read, 3 written.
TEST(Work, BagsReadAllTheirRows) {
  GraphBuilder g;
  const ValueId ids = g.input("ids", dense({12}, DType::Int64));
  const ValueId offsets = g.input("offsets", dense({3}, DType::Int64));
  const ValueId table = g.parameter("table", dense({100, 8}));
  g.call_many("y", "embedding_bag", {{"weight", table}, {"indices", ids}, {"offsets", offsets}},
              {dense({3, 8}), dense({12}, DType::Int64), dense({3}, DType::Int64),
               dense({3}, DType::Int64)});
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{0, 12 * 32 + 3 * 32 + 15 * 8, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardWeight), Sum{});
}

Graph attention(double dropout) {
  Start g(dense({2, 3, 5, 4}));
  const ValueId k = g.call("k", "neg", {{"self", g.x}}, dense({2, 3, 7, 4}));
  const ValueId v = g.call("v", "neg", {{"self", g.x}}, dense({2, 3, 7, 6}));
  g.call("y", "scaled_dot_product_attention",
         {{"query", g.x}, {"key", k}, {"value", v}, {"dropout_p", dropout}}, dense({2, 3, 5, 6}));
  return g.build();
}

// Scores [2, 3, 5, 7] over depth 4 and their product with values of depth 6: 2 x 210 x (4 + 6)
// FLOP; backward two and a half times. The query is also read by k and v: its gradient is summed
// by the readers before the last, so not here.
TEST(Work, AttentionByHand) {
  const Graph graph = attention(0);
  const std::int64_t moved = 4 * (2 * 3) * (5 * 4 + 7 * 4 + 7 * 6 + 5 * 6);
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{4200, moved, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{2.5 * 4200, 2 * moved, 1}));
}

TEST(Work, AttentionByPartsDoesTheSameProducts) {
  const Graph graph = attention(0.1);
  EXPECT_EQ(last(graph, Pass::Forward, Precision::Fp32, DeviceType::Cpu).flops, 4200);
  EXPECT_EQ(last(graph, Pass::BackwardInput, Precision::Fp32, DeviceType::Cpu).flops, 2 * 4200);
  EXPECT_EQ(last(graph, Pass::Forward, Precision::Fp32, DeviceType::Cpu).kernels, 5);
}

// gelu: reads x, writes y; backward reads dy and x, writes dx.
TEST(Work, ElementWiseByHand) {
  Start g(dense({4, 8}));
  g.call("y", "gelu", {{"self", g.x}}, dense({4, 8}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{0, 256, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{0, 384, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardWeight), Sum{});
}

TEST(Work, ViewsCostNothingForward) {
  Start g(dense({4, 8}));
  g.call("y", "transpose", {{"self", g.x}}, strided({8, 4}, {1, 8}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), Sum{});
  EXPECT_EQ(last(graph, Pass::BackwardInput), Sum{});
  Start i(dense({4, 8}));
  i.call("y", "dropout", {{"input", i.x}, {"p", 0.0}, {"train", true}}, dense({4, 8}));
  const Graph idle = i.build();
  EXPECT_EQ(last(idle, Pass::Forward), Sum{});
  EXPECT_EQ(last(idle, Pass::BackwardInput), Sum{});
}

// The gradient of half a tensor: zeros of the whole, then the half copied into it.
TEST(Work, SlicesFillTheirGradient) {
  Start g(dense({4, 8}));
  g.call("y", "slice", {{"self", g.x}}, strided({4, 4}, {8, 1}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), Sum{});
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{0, 128 + 2 * 64, 2}));
}

// a [4, 8] + b [8]: a's gradient is the incoming one; b's is its sum over the rows.
TEST(Work, BroadcastOperandsSumTheirGradient) {
  Start g(dense({8}));
  const ValueId rows = g.input("rows", dense({4, 8}));
  g.call("y", "add", {{"self", rows}, {"other", g.x}}, dense({4, 8}));
  EXPECT_EQ(last(g.build(), Pass::BackwardInput), (Sum{0, 128 + 32, 1}));
  Start same(dense({4, 8}));
  const ValueId other = same.input("other", dense({4, 8}));
  same.call("y", "add", {{"self", same.x}, {"other", other}}, dense({4, 8}));
  EXPECT_EQ(last(same.build(), Pass::BackwardInput), Sum{});
}

// A joined tensor's gradient is seen in parts: no work, however many parts.
TEST(Work, JoiningHandsItsGradientOn) {
  Start g(dense({4, 8}));
  g.call("y", "cat", {{"tensors", std::vector<ValueId>{g.x, g.x}}, {"dim", std::int64_t{0}}},
         dense({8, 8}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{0, 128 + 256, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), Sum{});
}

// x is read twice: the first reader adds its gradient to the second's (two reads, one write).
TEST(Work, AllReadersButTheLastAddTheirGradient) {
  Start g(dense({4, 8}));
  g.call("a", "neg", {{"self", g.x}}, dense({4, 8}));
  g.call("b", "neg", {{"self", g.x}}, dense({4, 8}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu);
  EXPECT_EQ(kernels.at(NodeId{1}).size(), 3u);
  EXPECT_EQ(kernels.at(NodeId{1}).back().bytes, Bytes{3 * 128});
  EXPECT_EQ(kernels.at(NodeId{2}).size(), 2u);
}

// Layer norm of 4 rows of 8: x and y; backward dy, x, dx and for the parameters dy, x again, then
// both (32 B) added to their sums.
TEST(Work, NormsByHand) {
  Start g(dense({4, 8}));
  const ValueId w = g.parameter("w", dense({8})), b = g.parameter("b", dense({8}));
  g.call("y", "layer_norm",
         {{"input", g.x}, {"normalized_shape", Sizes{8}}, {"weight", w}, {"bias", b}},
         dense({4, 8}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{0, 256, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{0, 384 + 256 + 2 * 96, 4}));
  Start c(dense({2, 4, 8}));
  c.call("y", "group_norm", {{"input", c.x}, {"num_groups", std::int64_t{2}}}, dense({2, 4, 8}));
  const Graph group = c.build();
  EXPECT_EQ(last(group, Pass::Forward), (Sum{0, 256 + 512, 2}));
  EXPECT_EQ(last(group, Pass::BackwardInput), (Sum{0, 512 + 768, 2}));
}

// Rows read, not the table; the gradient is as large as the table.
TEST(Work, EmbeddingReadsRowsAndWritesATable) {
  GraphBuilder g;
  const ValueId ids = g.input("ids", dense({3}, DType::Int64));
  const ValueId table = g.parameter("table", dense({100, 8}));
  g.call("y", "embedding", {{"weight", table}, {"indices", ids}}, dense({3, 8}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{0, 2 * 96 + 24, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), Sum{});
  EXPECT_EQ(last(graph, Pass::BackwardWeight), (Sum{0, 3200 + (3 * 96 + 24) + 3 * 3200, 3}));
}

// bf16 autocast: x and w are cast (4 B read, 2 written), the product runs on halves; dx and dw are
// cast back. dw is then added in fp32.
TEST(Work, AutocastCastsAndCastsBack) {
  Start g(dense({10, 4}));
  const ValueId w = g.parameter("w", dense({6, 4}));
  g.call("y", "linear", {{"input", g.x}, {"weight", w}}, dense({10, 6}));
  const Graph graph = g.build();
  const std::int64_t halves = 2 * (40 + 24 + 60);
  EXPECT_EQ(last(graph, Pass::Forward, Precision::Bf16Amp),
            (Sum{480, halves + 6 * 40 + 6 * 24, 3}));
  EXPECT_EQ(last(graph, Pass::BackwardInput, Precision::Bf16Amp), (Sum{480, halves + 6 * 40, 2}));
  EXPECT_EQ(last(graph, Pass::BackwardWeight, Precision::Bf16Amp),
            (Sum{480, halves + 6 * 24 + 12 * 24, 3}));
}

TEST(Work, UnknownOperatorsAreChargedByBytesBothWays) {
  Start g(dense({4, 8}));
  g.call("y", "no_such_operator", {{"self", g.x}}, dense({4, 8}));
  const Graph graph = g.build();
  EXPECT_EQ(last(graph, Pass::Forward), (Sum{0, 256, 1}));
  EXPECT_EQ(last(graph, Pass::BackwardInput), (Sum{0, 384, 1}));
}

}  // namespace
}  // namespace pfeife
