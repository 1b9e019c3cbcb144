// The operator table, storages of values, and types under autocast.
#include "planner/cost/operators/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/operators/graph_facts.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::ElementsAre;
using testing::GraphBuilder;
using testing::strided;

TEST(OperatorTable, KnowsOperatorsByNameWithoutOverload) {
  ASSERT_NE(find_operator("aten::linear"), nullptr);
  EXPECT_EQ(find_operator("aten::linear")->work, OperatorWork::Product);
  EXPECT_EQ(find_operator("linear"), nullptr);
  EXPECT_EQ(find_operator("mylib::linear"), nullptr);
  EXPECT_EQ(find_operator("aten::linea"), nullptr);
  for (const OperatorTraits& row : operator_table())
    EXPECT_EQ(find_operator("aten::" + std::string(row.name)), &row);
}

// What a view returns is the gradient's tensor again (or its place in a larger one); an operator
// that works on numbers must say what its backward does if it keeps something for it.
TEST(OperatorTable, RowsAreConsistent) {
  for (const OperatorTraits& row : operator_table()) {
    EXPECT_EQ(row.memory == Memory::InPlace, row.name.ends_with('_') && !row.name.ends_with("__"))
        << row.name;
    if (row.memory == Memory::View) {
      EXPECT_EQ(row.work, OperatorWork::None) << row.name;
      EXPECT_EQ(row.keeps, Keeps::Nothing) << row.name;
    }
    if (row.work == OperatorWork::Stream && row.keeps != Keeps::Nothing) {
      EXPECT_NE(row.gradient, Gradient::None) << row.name;
    }
    if (row.metadata_only) {
      EXPECT_TRUE(row.work == OperatorWork::Create || row.work == OperatorWork::None) << row.name;
    }
    const bool product =
        row.work == OperatorWork::Product || row.work == OperatorWork::Convolution ||
        row.work == OperatorWork::OtherConvolution || row.work == OperatorWork::Einsum ||
        row.work == OperatorWork::Recurrent || row.work == OperatorWork::Attention;
    if (product) {
      EXPECT_EQ(row.autocast, Autocast::Narrow) << row.name;
    }
  }
}

TEST(OperatorTable, DropoutIsRandomOnlyIfItDrops) {
  const auto random = [](const std::string& op, std::vector<Argument> arguments) {
    const Node node{.op = op, .arguments = std::move(arguments)};
    return draws_random_numbers(node, find_operator(op));
  };
  EXPECT_TRUE(random("aten::dropout", {{"p", 0.1}, {"train", true}}));
  EXPECT_FALSE(random("aten::dropout", {{"p", 0.0}, {"train", true}}));
  EXPECT_FALSE(random("aten::dropout", {{"p", 0.1}, {"train", false}}));
  EXPECT_TRUE(random("aten::scaled_dot_product_attention", {{"dropout_p", 0.1}}));
  EXPECT_FALSE(random("aten::scaled_dot_product_attention", {}));
  EXPECT_TRUE(random("aten::bernoulli_", {}));
  EXPECT_FALSE(random("aten::gelu", {}));
}

TEST(Viewable, FollowsTheRuleOfTensorView) {
  EXPECT_TRUE(viewable(dense({6, 4}), {24}));
  EXPECT_TRUE(viewable(dense({6, 4}), {2, 3, 2, 2}));
  EXPECT_TRUE(viewable(dense({6, 4}), {3, 8}));
  const TensorType transposed = strided({4, 6}, {1, 4});
  EXPECT_FALSE(viewable(transposed, {24}));
  EXPECT_TRUE(viewable(transposed, {2, 2, 6}));
  EXPECT_TRUE(viewable(transposed, {4, 1, 6}));
  EXPECT_FALSE(viewable(transposed, {6, 4}));
  // [batch 2, heads 3, time 5, depth 4] seen through [2, 5, 3, 4]: heads and batch do not fold.
  EXPECT_FALSE(viewable(strided({2, 3, 5, 4}, {60, 4, 12, 1}), {6, 5, 4}));
  EXPECT_TRUE(viewable(strided({1, 3, 5, 4}, {60, 4, 12, 1}), {3, 5, 4}));  // batch of 1: it does
  EXPECT_TRUE(viewable(strided({2, 5}, {0, 1}), {2, 5, 1}));                // expanded
  EXPECT_FALSE(viewable(strided({2, 5}, {0, 1}), {10}));
  EXPECT_TRUE(viewable(dense({}), {1, 1}));
}

/// Storages of all values, as the names of the values that allocated them.
std::vector<std::string> storages(const Graph& graph, Precision precision = Precision::Fp32) {
  const GraphFacts facts(graph, precision);
  std::vector<std::string> names;
  for (const ValueId v : facts.aliases.storage) names.push_back(graph.value(v).name);
  return names;
}

TEST(Storages, ViewsShareThemAndOthersDoNot) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 6}));
  const ValueId t = g.call("t", "transpose", {{"self", x}}, strided({6, 4}, {1, 6}));
  g.call("fits", "reshape", {{"self", x}}, dense({24}));
  g.call("copied", "reshape", {{"self", t}}, dense({24}));
  g.call("same", "contiguous", {{"self", x}}, dense({4, 6}));
  g.call("laid_out", "contiguous", {{"self", t}}, dense({6, 4}));
  g.call("idle", "dropout", {{"input", x}, {"p", 0.0}, {"train", true}}, dense({4, 6}));
  g.call("drops", "dropout", {{"input", x}, {"p", 0.5}, {"train", true}}, dense({4, 6}));
  g.call("cast", "to", {{"self", x}, {"dtype", DType::Int64}}, dense({4, 6}, DType::Int64));
  g.call("uncast", "to", {{"self", x}, {"dtype", DType::Float32}}, dense({4, 6}));
  g.call("changed", "relu_", {{"self", t}}, strided({6, 4}, {1, 6}));
  EXPECT_THAT(storages(g.build()), ElementsAre("x", "x", "x", "copied", "x", "laid_out", "x",
                                               "drops", "cast", "x", "x"));
}

TEST(Storages, ListsGoWithTheirOwnTensors) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({2, 4})), y = g.input("y", dense({1, 4}));
  g.call_many("parts", "unbind", {{"self", x}}, {dense({4}), dense({4})});
  g.call_many("wide", "broadcast_tensors", {{"tensors", std::vector<ValueId>{x, y}}},
              {dense({2, 4}), strided({2, 4}, {0, 1})});
  EXPECT_THAT(storages(g.build()), ElementsAre("x", "y", "x", "x", "x", "y"));
}

TEST(Storages, WritesAreListedWithTheirStorage) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({2, 3, 4}));
  const ValueId mean = g.buffer("mean", dense({3})), var = g.buffer("var", dense({3}));
  const ValueId w = g.parameter("w", dense({3}));
  const ValueId norm = g.call("norm", "batch_norm",
                              {{"input", x},
                               {"weight", w},
                               {"running_mean", mean},
                               {"running_var", var},
                               {"training", true}},
                              dense({2, 3, 4}));
  const ValueId part = g.call("part", "select", {{"self", norm}}, dense({3, 4}));
  g.call("relu", "relu_", {{"self", part}}, dense({3, 4}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Fp32);
  EXPECT_THAT(facts.aliases.writes,
              ElementsAre(Aliasing::Write{NodeId{0}, mean}, Aliasing::Write{NodeId{0}, var},
                          Aliasing::Write{NodeId{2}, norm}));
}

TEST(Storages, UnknownOperatorsAllocateUnlessTheirNameSaysInPlace) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4}));
  g.call("fresh", "no_such_operator", {{"self", x}}, dense({4}));
  g.call("written", "no_such_operator_", {{"self", x}}, dense({4}));
  g.call("dunder", "__no_such_operator__", {{"self", x}}, dense({4}));
  const Graph graph = g.build();
  EXPECT_THAT(storages(graph), ElementsAre("x", "fresh", "x", "dunder"));
  const GraphFacts facts(graph, Precision::Fp32);
  EXPECT_THAT(facts.aliases.writes, ElementsAre(Aliasing::Write{NodeId{1}, x}));
}

// linear -> 16 bits; its sum with an fp32 tensor -> fp32; layer norm -> fp32; a cast written into
// the graph works, so it is no view.
TEST(Autocast, TypesFollowTheOperators) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 8}));
  const ValueId w = g.parameter("w", dense({8, 8}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  const ValueId act = g.call("act", "gelu", {{"self", y}}, dense({4, 8}));
  g.call("sum", "add", {{"self", act}, {"other", x}}, dense({4, 8}));
  const ValueId double_ = g.call("double", "add", {{"self", act}, {"other", y}}, dense({4, 8}));
  g.call("norm", "layer_norm",
         {{"input", double_}, {"normalized_shape", std::vector<std::int64_t>{8}}}, dense({4, 8}));
  g.call("cast", "to", {{"self", y}, {"dtype", DType::Float32}}, dense({4, 8}));
  const Graph graph = g.build();
  const GraphFacts facts(graph, Precision::Bf16Amp);
  EXPECT_THAT(facts.types,
              ElementsAre(DType::Float32, DType::Float32, DType::BFloat16, DType::BFloat16,
                          DType::Float32, DType::BFloat16, DType::Float32, DType::Float32));
  EXPECT_EQ(storages(graph, Precision::Bf16Amp).back(), "cast");
  EXPECT_EQ(storages(graph, Precision::Tf32).back(), "y");
  EXPECT_EQ(GraphFacts(graph, Precision::Fp16Amp).types[y.index()], DType::Float16);
}

}  // namespace
}  // namespace pfeife
