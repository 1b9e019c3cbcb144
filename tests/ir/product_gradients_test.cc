// Gradients of products that can be made one without the other.
#include "planner/ir/model/product_gradients.h"

#include <gtest/gtest.h>

#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using testing::GraphBuilder;

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
