// What autograd keeps, operator by operator, and what W needs of it.
#include "planner/cost/operators/saved.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::IsEmpty;
using testing::linear_graph;
using testing::LinearGraph;
using testing::Sizes;
using testing::Start;
using testing::strided;
using ::testing::UnorderedElementsAre;

/// Names of the kept storages with their bytes.
std::vector<std::pair<std::string, std::int64_t>> kept(const Graph& graph,
                                                       Precision precision = Precision::Fp32,
                                                       DeviceType device = DeviceType::Gpu) {
  const GraphFacts facts(graph, precision);
  std::vector<std::pair<std::string, std::int64_t>> list;
  for (const SavedStorage& storage : saved_memory(facts, device).storages)
    list.emplace_back(graph.value(storage.value).name, storage.bytes.value);
  return list;
}
/// Bytes that the last node keeps besides storages.
Bytes own(const Graph& graph, Precision precision = Precision::Fp32,
          DeviceType device = DeviceType::Gpu) {
  const GraphFacts facts(graph, precision);
  return saved_memory(facts, device).node_bytes.back();
}
Bytes weight_own(const Graph& graph, Precision precision = Precision::Fp32) {
  const GraphFacts facts(graph, precision);
  return saved_memory(facts, DeviceType::Gpu).node_weight_bytes.back();
}
/// Nodes whose W needs the (only) storage that is kept.
std::size_t weight_savers(const Graph& graph) {
  const GraphFacts facts(graph, Precision::Fp32);
  return saved_memory(facts, DeviceType::Gpu).storages.at(0).weight_savers.size();
}

// silu_ overwrites what its backward needs, so it copies it before; relu_ needs its result.
TEST(Saved, InPlaceOperatorsThatNeedTheirInputCopyIt) {
  for (const auto& [op, copied] : {std::pair{"silu_", 64}, {"hardswish_", 64}, {"relu_", 0}}) {
    Start g(dense({2, 8}));
    g.call("y", op, {{"self", g.x}}, dense({2, 8}));
    EXPECT_EQ(own(g.build()), Bytes{copied}) << op;
  }
}

// (a b) c: a's gradient needs b c, the product of which needs a b: the result in between is kept
// for c, whose gradient it makes; b is not, as a needs no gradient.
TEST(Saved, EinsumKeepsTheFactorsOfEachProduct) {
  GraphBuilder g;
  const ValueId a = g.input("a", dense({3, 5}));
  const ValueId b = g.parameter("b", dense({5, 7})), c = g.parameter("c", dense({7, 11}));
  g.call("y", "einsum",
         {{"equation", std::string("ij,jk,kl->il")}, {"tensors", std::vector<ValueId>{a, b, c}}},
         dense({3, 11}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph), ElementsAre(std::pair{"a", 4 * 15}));
  EXPECT_EQ(own(graph), Bytes{4 * 21});
}

// W of the experts' matrices needs the rows, and the gradient of the result: 6 x 5 floats.
TEST(Saved, GroupedProductsAndEinsumsLeaveTheirWeightsToW) {
  Start g(dense({6, 4}));
  const ValueId w = g.parameter("w", dense({3, 4, 5}));
  g.call("y", "_grouped_mm", {{"self", g.x}, {"mat2", w}}, dense({6, 5}));
  const Graph grouped = g.build();
  EXPECT_THAT(kept(grouped), ElementsAre(std::pair{"x", 96}));
  EXPECT_EQ(weight_savers(grouped), 1u);
  EXPECT_EQ(weight_own(grouped), Bytes{120});
  Start e(dense({6, 4}));
  const ValueId v = e.parameter("v", dense({4, 5}));
  e.call("y", "einsum",
         {{"equation", std::string("ti,io->to")}, {"tensors", std::vector<ValueId>{e.x, v}}},
         dense({6, 5}));
  const Graph einsum = e.build();
  EXPECT_THAT(kept(einsum), ElementsAre(std::pair{"x", 96}));
  EXPECT_EQ(weight_savers(einsum), 1u);
  EXPECT_EQ(weight_own(einsum), Bytes{120});
}

// 5 steps of 2 samples of 8 numbers, samples first: on a CPU each direction keeps its own copy in
// the order of the steps (320 B). 5 gates and states of 16 numbers a step (320 B) each direction.
TEST(Saved, RecurrentLayersTurnTheirInputAroundForEachDirection) {
  for (const bool both : {false, true}) {
    Start g(dense({2, 5, 8}));
    std::vector<ValueId> params;
    for (int direction = 0; direction < (both ? 2 : 1); ++direction)
      for (const Sizes& sizes : {Sizes{16, 8}, Sizes{16, 16}})
        params.push_back(g.parameter("p" + std::to_string(params.size()), dense(sizes)));
    const ValueId zero = g.input("zero", dense({both ? 2 : 1, 2, 16}));
    g.call_many("y", "rnn_tanh",
                {{"input", g.x},
                 {"hx", zero},
                 {"params", params},
                 {"has_biases", false},
                 {"num_layers", std::int64_t{1}},
                 {"dropout", 0.0},
                 {"train", true},
                 {"bidirectional", both},
                 {"batch_first", true}},
                {dense({2, 5, both ? 32 : 16}), dense({both ? 2 : 1, 2, 16})});
    const Graph graph = g.build();
    const std::int64_t directions = both ? 2 : 1;
    EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Cpu), Bytes{directions * (320 + 640)});
    EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Gpu), Bytes{directions * 640});
  }
}

// 5 steps of 2 samples of 8 numbers, width 16: torch's saved_tensors_hooks count 4,800 B of each,
// the first states (128 B each) among them, and 1,088 B of a layer without gates.
TEST(Saved, RecurrentLayersKeepWhatTheirGatesMade) {
  for (const auto& [op, gates, states, counted] :
       {std::tuple{"lstm", 4, 2, 4800}, {"gru", 3, 1, 4800}, {"rnn_tanh", 1, 1, 1088}}) {
    Start g(dense({2, 5, 8}));
    std::vector<ValueId> params{g.parameter("a", dense({16 * gates, 8})),
                                g.parameter("b", dense({16 * gates, 16}))};
    std::vector<ValueId> hx;
    for (int i = 0; i < states; ++i) hx.push_back(g.input("state", dense({1, 2, 16})));
    g.call_many("y", op,
                {states > 1 ? Argument{"hx", hx} : Argument{"hx", hx[0]},
                 {"input", g.x},
                 {"params", params},
                 {"has_biases", false},
                 {"num_layers", std::int64_t{1}},
                 {"dropout", 0.0},
                 {"train", true},
                 {"bidirectional", false},
                 {"batch_first", true}},
                {dense({2, 5, 16}), dense({1, 2, 16})});
    const Graph graph = g.build();
    const Bytes first_states{
        128 * static_cast<std::int64_t>(kept(graph, Precision::Fp32, DeviceType::Cpu).size())};
    EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Cpu) + first_states, Bytes{counted}) << op;
  }
}

TEST(Saved, SortsAndExtremesKeepPlaces) {
  Start g(dense({2, 8}));
  g.call_many("y", "topk", {{"self", g.x}, {"k", std::int64_t{3}}},
              {dense({2, 3}), dense({2, 3}, DType::Int64)});
  EXPECT_THAT(kept(g.build()), ElementsAre(std::pair{"y.1", 48}));
  Start h(dense({2, 8}));
  h.call_many("y", "max", {{"self", h.x}, {"dim", std::int64_t{1}}},
              {dense({2}), dense({2}, DType::Int64)});
  EXPECT_THAT(kept(h.build()), ElementsAre(std::pair{"y.1", 16}));
}

TEST(Saved, NothingWithoutGradient) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4})), frozen = g.parameter("frozen", dense({4}), false);
  g.call("y", "mul", {{"self", x}, {"other", frozen}}, dense({4}));
  EXPECT_THAT(kept(g.build()), IsEmpty());
}

TEST(Saved, InputOrOutputByTheRow) {
  for (const auto& [op, name] : {std::pair{"gelu", "x"},
                                 {"silu", "x"},
                                 {"sin", "x"},
                                 {"tanh", "y"},
                                 {"softmax", "y"},
                                 {"exp", "y"}}) {
    Start g(dense({2, 8}));
    g.call("y", op, {{"self", g.x}}, dense({2, 8}));
    EXPECT_THAT(kept(g.build()), ElementsAre(std::pair{name, 64})) << op;
  }
  Start g(dense({2, 8}));
  g.call("y", "neg", {{"self", g.x}}, dense({2, 8}));
  EXPECT_THAT(kept(g.build()), IsEmpty());
}

TEST(Saved, AStorageCountsOnceHoweverManyKeepIt) {
  Start g(dense({2, 8}));
  const ValueId t = g.call("t", "transpose", {{"self", g.x}}, strided({8, 2}, {1, 8}));
  g.call("a", "gelu", {{"self", g.x}}, dense({2, 8}));
  g.call("b", "gelu", {{"self", t}}, strided({8, 2}, {1, 8}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  ASSERT_EQ(saved.storages.size(), 1u);
  EXPECT_THAT(saved.storages[0].savers, ElementsAre(NodeId{2}, NodeId{3}));
  EXPECT_THAT(saved.storages[0].weight_savers, IsEmpty());
}

// A view of a large storage keeps all of it.
TEST(Saved, AViewKeepsItsWholeStorage) {
  Start g(dense({16, 8}));
  const ValueId row = g.call("row", "select", {{"self", g.x}}, dense({8}));
  g.call("y", "gelu", {{"self", row}}, dense({8}));
  EXPECT_THAT(kept(g.build()), ElementsAre(std::pair{"x", 512}));
}

TEST(Saved, FactorsAreKeptIffTheOtherNeedsAGradient) {
  Start g(dense({4}));
  const ValueId scale = g.input("scale", dense({4}));
  g.call("y", "mul", {{"self", g.x}, {"other", scale}}, dense({4}));
  EXPECT_THAT(kept(g.build()), ElementsAre(std::pair{"scale", 16}));
  Start h(dense({4}));
  const ValueId weight = h.parameter("weight", dense({4}));
  h.call("y", "mul", {{"self", weight}, {"other", h.x}}, dense({4}));
  EXPECT_THAT(kept(h.build()), ElementsAre(std::pair{"x", 16}));  // parameters do not count
  Start n(dense({4}));
  n.call("y", "mul", {{"self", n.x}, {"other", 2.0}}, dense({4}));
  EXPECT_THAT(kept(n.build()), IsEmpty());
}

TEST(Saved, LinearKeepsItsInputAndWNeedsItWithTheGradient) {
  const LinearGraph g = linear_graph(10, 4, 6);
  const GraphFacts facts(g.graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  // data (for the gradient of scale) and x (for that of w).
  EXPECT_THAT(kept(g.graph), ElementsAre(std::pair{"data", 160}, std::pair{"x", 160}));
  EXPECT_THAT(saved.storages[0].weight_savers, IsEmpty());
  EXPECT_THAT(saved.storages[1].weight_savers, ElementsAre(NodeId{1}));
  EXPECT_EQ(saved.node_bytes[1], Bytes{0});
  EXPECT_EQ(saved.node_weight_bytes[1], Bytes{10 * 6 * 4});  // the gradient of y
}

TEST(Saved, ParametersOfNormsAreNotLeftToW) {
  Start g(dense({2, 3, 8}));
  const ValueId gamma = g.parameter("gamma", dense({8})), beta = g.parameter("beta", dense({8}));
  g.call("y", "layer_norm",
         {{"input", g.x}, {"normalized_shape", Sizes{8}}, {"weight", gamma}, {"bias", beta}},
         dense({2, 3, 8}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph), ElementsAre(std::pair{"x", 192}));
  EXPECT_EQ(own(graph), Bytes{6 * 8});  // mean and deviation of six rows
  EXPECT_EQ(weight_own(graph), Bytes{0});
}

TEST(Saved, StatisticsOfGroupAndBatchNorm) {
  Start g(dense({2, 6, 5, 5}));
  g.call("y", "group_norm", {{"input", g.x}, {"num_groups", std::int64_t{3}}}, dense({2, 6, 5, 5}));
  EXPECT_EQ(own(g.build()), Bytes{2 * 3 * 8});
  Start b(dense({2, 6, 5, 5}));
  b.call("y", "batch_norm", {{"input", b.x}, {"training", true}}, dense({2, 6, 5, 5}));
  EXPECT_EQ(own(b.build()), Bytes{6 * 8});
}

// matmul of [2, 3, 5, 4] x [2, 3, 4, 5] as batches of 6: an operand whose batch dimensions do not
// fold is copied, and the copy is what is kept.
TEST(Saved, ProductsKeepTheCopiesTheyMake) {
  Start g(dense({2, 5, 3, 4}));
  const ValueId q =
      g.call("q", "transpose", {{"self", g.x}}, strided({2, 3, 5, 4}, {60, 4, 12, 1}));
  const ValueId k = g.call("k", "gelu", {{"self", q}}, dense({2, 3, 5, 4}));
  const ValueId kt =
      g.call("kt", "transpose", {{"self", k}}, strided({2, 3, 4, 5}, {60, 20, 1, 4}));
  g.call("scores", "matmul", {{"self", q}, {"other", kt}}, dense({2, 3, 5, 5}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph), ElementsAre(std::pair{"x", 480}, std::pair{"k", 480}));  // x: by gelu
  const GraphFacts facts(graph, Precision::Fp32);
  EXPECT_EQ(saved_memory(facts, DeviceType::Gpu).node_bytes[4], Bytes{480});  // q's copy
  EXPECT_EQ(weight_own(graph), Bytes{0});  // no parameter among them
}

TEST(Saved, DropoutKeepsItsMaskInTheDevicesForm) {
  Start g(dense({4, 8}));
  g.call("y", "dropout", {{"input", g.x}, {"p", 0.1}, {"train", true}}, dense({4, 8}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph), IsEmpty());
  EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Gpu), Bytes{32});
  EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Cpu), Bytes{128});
  Start idle(dense({4, 8}));
  idle.call("y", "dropout", {{"input", idle.x}, {"p", 0.0}, {"train", true}}, dense({4, 8}));
  EXPECT_EQ(own(idle.build()), Bytes{0});
}

Graph masked_attention(double dropout, DType mask_type, bool masked) {
  Start g(dense({2, 3, 5, 4}));
  const ValueId key = g.call("key", "neg", {{"self", g.x}}, dense({2, 3, 5, 4}));
  const ValueId value = g.call("value", "neg", {{"self", g.x}}, dense({2, 3, 5, 4}));
  const ValueId mask = g.input("mask", dense({5, 5}, mask_type));
  std::vector<Argument> arguments = {
      {"query", g.x}, {"key", key}, {"value", value}, {"dropout_p", dropout}};
  if (masked) arguments.push_back({"attn_mask", mask});
  g.call("y", "scaled_dot_product_attention", arguments, dense({2, 3, 5, 4}));
  return g.build();
}

TEST(Saved, FusedAttentionKeepsOperandsOutputAndAFloatARow) {
  const Graph graph = masked_attention(0, DType::Float32, false);
  EXPECT_THAT(kept(graph), UnorderedElementsAre(std::pair{"x", 480}, std::pair{"key", 480},
                                                std::pair{"value", 480}, std::pair{"y", 480}));
  EXPECT_EQ(own(graph), Bytes{2 * 3 * 5 * 4});
  EXPECT_EQ(kept(masked_attention(0, DType::Float32, true)).size(), 5u);
  const Graph with_bool = masked_attention(0, DType::Bool, true);
  EXPECT_EQ(kept(with_bool).size(), 4u);
  EXPECT_EQ(own(with_bool), Bytes{2 * 3 * 5 * 4 + 5 * 5 * 4});  // the mask made additive
}

// On a CPU dropout goes by parts: scaled q and k (480 B each) and three matrices of scores
// (2 x 3 x 5 x 5 floats) besides the value.
TEST(Saved, AttentionWithDropoutKeepsItsScoresOnACpuOnly) {
  const Graph graph = masked_attention(0.1, DType::Float32, false);
  EXPECT_THAT(kept(graph, Precision::Fp32, DeviceType::Cpu), ElementsAre(std::pair{"value", 480}));
  EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Cpu), Bytes{2 * 480 + 3 * 600});
  EXPECT_EQ(kept(graph, Precision::Fp32, DeviceType::Gpu).size(), 4u);
}

// The value as GPT-2 has it: a third of one projection, its heads turned in front. The product by
// parts copies it, and the projection (3 x 480 B) goes.
TEST(Saved, AttentionByPartsKeepsACopyOfAValueWhoseHeadsAreNoBatch) {
  Start g(dense({2, 5, 36}));
  const ValueId all = g.call("all", "neg", {{"self", g.x}}, dense({2, 5, 36}));
  const ValueId third = g.call("third", "slice", {{"self", all}, {"dim", std::int64_t{2}}},
                               strided({2, 5, 12}, {180, 36, 1}));
  const ValueId heads =
      g.call("heads", "view", {{"self", third}}, strided({2, 5, 3, 4}, {180, 36, 4, 1}));
  const ValueId value =
      g.call("value", "transpose", {{"self", heads}}, strided({2, 3, 5, 4}, {180, 4, 36, 1}));
  g.call("y", "scaled_dot_product_attention",
         {{"query", value}, {"key", value}, {"value", value}, {"dropout_p", 0.1}},
         dense({2, 3, 5, 4}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph, Precision::Fp32, DeviceType::Cpu), IsEmpty());
  EXPECT_EQ(own(graph, Precision::Fp32, DeviceType::Cpu), Bytes{3 * 480 + 3 * 600});
  EXPECT_THAT(kept(graph), ElementsAre(std::pair{"all", 1440}, std::pair{"y", 480}));
}

TEST(Saved, LossesKeepLogSoftmaxOrBothInputs) {
  Start g(dense({4, 10}));
  const ValueId labels = g.input("labels", dense({4}, DType::Int64));
  g.call("loss", "cross_entropy_loss", {{"self", g.x}, {"target", labels}}, dense({}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph), ElementsAre(std::pair{"labels", 32}));
  EXPECT_EQ(own(graph), Bytes{4 * 10 * 4 + 4});
  Start m(dense({4}));
  const ValueId target = m.input("target", dense({4}));
  m.call("loss", "mse_loss", {{"self", m.x}, {"target", target}}, dense({}));
  EXPECT_THAT(kept(m.build()), ElementsAre(std::pair{"x", 16}, std::pair{"target", 16}));
}

TEST(Saved, EmbeddingKeepsIndicesAndLeavesItsTableToW) {
  GraphBuilder g;
  const ValueId ids = g.input("ids", dense({2, 3}, DType::Int64));
  const ValueId table = g.parameter("table", dense({100, 8}));
  g.call("y", "embedding", {{"weight", table}, {"indices", ids}}, dense({2, 3, 8}));
  const Graph graph = g.build();
  EXPECT_THAT(kept(graph), ElementsAre(std::pair{"ids", 48}));
  const GraphFacts facts(graph, Precision::Fp32);
  EXPECT_THAT(saved_memory(facts, DeviceType::Gpu).storages[0].weight_savers,
              ElementsAre(NodeId{0}));
  EXPECT_EQ(weight_own(graph), Bytes{2 * 3 * 8 * 4});
}

TEST(Saved, PoolingAndConditions) {
  Start g(dense({1, 2, 4, 4}));
  g.call("y", "max_pool2d", {{"self", g.x}}, dense({1, 2, 2, 2}));
  EXPECT_EQ(own(g.build()), Bytes{8 * 8});
  Start mean(dense({1, 2, 4, 4}));
  mean.call("y", "adaptive_avg_pool2d", {{"self", mean.x}}, dense({1, 2, 1, 1}));
  EXPECT_THAT(kept(mean.build()), IsEmpty());
  Start pooled(dense({1, 2, 4, 4}));
  pooled.call("y", "adaptive_avg_pool2d", {{"self", pooled.x}}, dense({1, 2, 2, 2}));
  EXPECT_THAT(kept(pooled.build()), ElementsAre(std::pair{"x", 128}));
  Start where(dense({4}));
  const ValueId condition = where.input("condition", dense({4}, DType::Bool));
  where.call("y", "where", {{"condition", condition}, {"self", where.x}, {"other", 0.0}},
             dense({4}));
  EXPECT_THAT(kept(where.build()), ElementsAre(std::pair{"condition", 4}));
}

// Under bf16 autocast the two linears make a 16-bit copy of x each; the weight's copy is shared
// with whoever uses the weight again. y is 16 bits already, so the norm keeps an fp32 copy of it.
TEST(Saved, AutocastKeepsCopiesOfWhatItCasts) {
  Start g(dense({4, 8}));
  const ValueId w = g.parameter("weight", dense({8, 8}));
  const ValueId y = g.call("y", "linear", {{"input", g.x}, {"weight", w}}, dense({4, 8}));
  g.call("z", "linear", {{"input", g.x}, {"weight", w}}, dense({4, 8}));
  g.call("norm", "layer_norm", {{"input", y}, {"normalized_shape", Sizes{8}}}, dense({4, 8}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Bf16Amp);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  EXPECT_THAT(kept(graph, Precision::Bf16Amp), ElementsAre(std::pair{"weight", 8 * 8 * 2}));
  EXPECT_THAT(saved.storages[0].savers, ElementsAre(NodeId{1}, NodeId{2}));
  EXPECT_THAT(saved.node_bytes, ElementsAre(Bytes{0}, Bytes{64}, Bytes{64}, Bytes{128 + 4 * 8}));
  // W: the copy of x and the 16-bit gradient of y.
  EXPECT_THAT(saved.node_weight_bytes, ElementsAre(Bytes{0}, Bytes{128}, Bytes{128}, Bytes{0}));
}

TEST(Saved, AnUnknownOperatorKeepsEverything) {
  Start g(dense({4}));
  g.call("y", "no_such_operator", {{"self", g.x}}, dense({4}));
  EXPECT_THAT(kept(g.build()), ElementsAre(std::pair{"x", 16}, std::pair{"y", 16}));
}

}  // namespace
}  // namespace pfeife
