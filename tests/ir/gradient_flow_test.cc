#include "planner/ir/model/gradient_flow.h"

#include <gtest/gtest.h>

#include "planner/ir/model/product_gradients.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using testing::GraphBuilder;

// Builds a graph node by node; each node makes one value.
struct Builder {
  Graph graph;

  ValueId given(ValueRole role, bool requires_grad) {
    graph.values.push_back({.name = "v", .role = role, .requires_grad = requires_grad});
    return ValueId{graph.values.size() - 1};
  }
  ValueId call(const std::string& op, std::vector<ValueId> inputs, DType dtype = DType::Float32) {
    const ValueId out = given(ValueRole::Intermediate, true);  // stale: must be computed anew
    graph.values.back().type.dtype = dtype;
    graph.values.back().producer = NodeId{graph.nodes.size()};
    Node node{.name = "n", .op = op, .outputs = {out}};
    for (const ValueId input : inputs) node.arguments.push_back({"a", input});
    graph.nodes.push_back(node);
    return out;
  }
  bool requires_grad(ValueId id) const { return graph.value(id).requires_grad; }
};

TEST(RequiresGrad, FlowsFromParametersThroughFloatingOutputs) {
  Builder b;
  const ValueId w = b.given(ValueRole::Parameter, true),
                frozen = b.given(ValueRole::Parameter, false);
  const ValueId x = b.given(ValueRole::Input, false);
  const ValueId from_frozen = b.call("aten::linear", {x, frozen});
  const ValueId hidden = b.call("aten::linear", {x, w});
  const ValueId after = b.call("aten::gelu", {hidden});
  const ValueId mask = b.call("aten::gt", {after}, DType::Bool);
  const ValueId masked = b.call("aten::to", {mask});
  propagate_requires_grad(b.graph);
  EXPECT_FALSE(b.requires_grad(from_frozen));
  EXPECT_TRUE(b.requires_grad(hidden));
  EXPECT_TRUE(b.requires_grad(after));
  EXPECT_FALSE(b.requires_grad(mask));
  EXPECT_FALSE(b.requires_grad(masked));
  EXPECT_FALSE(b.requires_grad(x));
}

TEST(RequiresGrad, StopsAtOperatorsThatReadOnlyMetadata) {
  Builder b;
  const ValueId w = b.given(ValueRole::Parameter, true);
  const ValueId zeros = b.call("aten::zeros_like", {w}), cut = b.call("aten::detach", {w});
  propagate_requires_grad(b.graph);
  EXPECT_FALSE(b.requires_grad(zeros));
  EXPECT_FALSE(b.requires_grad(cut));
}

// buffer = zeros; slice(buffer).copy_(w): whoever reads the buffer afterwards depends on w, whoever
// read it before not.
TEST(RequiresGrad, InPlaceWritesReachTheBaseOfViewsFromThereOn) {
  Builder b;
  const ValueId w = b.given(ValueRole::Parameter, true);
  const ValueId buffer = b.call("aten::zeros", {});
  const ValueId before = b.call("aten::neg", {buffer});
  const ValueId part = b.call("aten::slice", {buffer});
  b.call("aten::copy_", {part, w});
  const ValueId after = b.call("aten::neg", {buffer});
  propagate_requires_grad(b.graph);
  EXPECT_FALSE(b.requires_grad(before));
  EXPECT_TRUE(b.requires_grad(buffer));
  EXPECT_TRUE(b.requires_grad(after));
}

// Gradients of products that can be made one without the other.

// y = sum over the letters that y lacks: the chain rule exchanges an operand with the result.
TEST(EinsumGradients, ExchangeAnOperandWithTheResult) {
  EXPECT_EQ(einsum_gradients("bti,hio->bhto"), (EinsumGradients{"bhto,hio->bti", "bti,bhto->hio"}));
  EXPECT_EQ(einsum_gradients("ij, jk -> ik"), (EinsumGradients{"ik,jk->ij", "ij,ik->jk"}));
  EXPECT_EQ(einsum_gradients("i,j->ij"), (EinsumGradients{"ij,j->i", "i,ij->j"}));
}

// A diagonal, a sum over one operand alone (its gradient is spread out), what "..." stands for, and
// other numbers of operands are no einsums backward.
TEST(EinsumGradients, AreNoneWhereBackwardIsNoEinsum) {
  for (const char* equation : {"ii,ij->ij", "ij,k->k", "...i,ij->...j", "ij->ji", "ij,jk,kl->il",
                               "ij,jk", "ij,jk->iik", ""})
    EXPECT_FALSE(einsum_gradients(equation)) << equation;
}

TEST(ParameterBehind, IsFoundThroughViewsThatOneNodeReads) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({2, 3})), w = g.parameter("w", dense({3, 2}));
  const ValueId turned = g.call("turned", "t", {{"self", w}}, dense({2, 3}));
  const ValueId seen = g.call("seen", "view", {{"self", turned}}, dense({2, 3}));
  const ValueId half = g.call("half", "slice", {{"self", w}}, dense({1, 2}));
  g.call("y", "add", {{"self", x}, {"other", seen}}, dense({2, 3}));
  Graph graph = g.build();
  EXPECT_EQ(parameter_behind(graph, w), w);
  EXPECT_EQ(parameter_behind(graph, seen), w);
  EXPECT_EQ(parameter_behind(graph, half), kNoValue);  // a part
  EXPECT_EQ(parameter_behind(graph, x), kNoValue);
  EXPECT_EQ(sole_reader(graph, seen), NodeId{3});
  EXPECT_EQ(sole_reader(graph, w), std::nullopt);  // two
  graph.outputs.push_back(turned);
  EXPECT_EQ(parameter_behind(graph, seen), kNoValue);  // and one who reads the result
}

}  // namespace
}  // namespace pfeife
