// Costs that users give, and operators that have none.
#include "planner/cost/operators/uncosted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/operators/work.h"
#include "planner/ir/basics/error.h"
#include "tests/cost/graph_builder.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::Start;

/// y [4, 6] = my_product(x [4, 8], w [6, 8]) between two plain products of 2 x 4 x 8 x 8 FLOPs.
Graph with_own_operator() {
  Start g(dense({4, 8}));
  const ValueId square = g.parameter("square", dense({8, 8})), w = g.parameter("w", dense({6, 8}));
  const ValueId x = g.call("x1", "linear", {{"input", g.x}, {"weight", square}}, dense({4, 8}));
  const ValueId y = g.call("y", "my_product", {{"x", x}, {"w", w}}, dense({4, 6}));
  g.call("z", "sum", {{"self", y}}, dense({}));
  return g.build();
}

TEST(OperatorCost, FormulasKnowTheSizesOfTheNode) {
  const Graph graph = with_own_operator();
  const auto value = [&](const std::string& formula) {
    return formula_value(formula, graph, graph.nodes[2]);
  };
  EXPECT_EQ(value("2*m*n*k"), 2 * 4 * 6 * 8);
  EXPECT_EQ(value("in0 + in1 + out0"), 32 + 48 + 24);
  EXPECT_EQ(value("in1_d0 * (in0_d0 - 1) / 2"), 9);
  EXPECT_EQ(value("1.5e3"), 1500);
  for (const std::string wrong :
       {"", "2*", "(m", "m n", "2*batch", "in2", "in0_d2", "in0_1", "m-100", "1/0"})
    EXPECT_THROW(value(wrong), ConfigError) << wrong;
  EXPECT_THROW(check_formula("2*rows"), ConfigError);
  EXPECT_NO_THROW(check_formula("in7_d3"));
}

// As a product of the same sizes would have: forward, one for x and one for w, and w's gradient
// added to its sum.
TEST(OperatorCost, OfAProductIsWhatAProductCosts) {
  const Graph graph = with_own_operator();
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const std::vector<OperatorCost> costs{{"aten::my_product", "2*m*n*k", "io"}};
  const auto kernels = KernelList(facts, saved, DeviceType::Gpu, costs).at(NodeId{2});
  ASSERT_THAT(kernels, SizeIs(4));
  double flops = 0;
  for (const Kernel& kernel : kernels) flops += kernel.flops.value;
  EXPECT_EQ(flops, 3 * 384);
  EXPECT_EQ(kernels[0].bytes, Bytes{4 * (32 + 48 + 24)});
  EXPECT_EQ(kernels[3].bytes, Bytes{3 * 4 * 48});
}

// 384 of 384 + 2 x 4 x 8 x 8 FLOPs, were it a product.
TEST(Uncosted, OperatorsWithParametersAreSizedAsProducts) {
  const Graph graph = with_own_operator();
  const auto found = uncosted_operators(graph, {});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].op, "aten::my_product");
  EXPECT_TRUE(found[0].reads_parameters);
  EXPECT_NEAR(found[0].of_flops, 384.0 / (384 + 512), 1e-12);
  EXPECT_TRUE(found[0].matters());
  EXPECT_TRUE(found[0].decides());
  EXPECT_MESSAGE(to_string(found[0]));
  EXPECT_THAT(uncosted_operators(graph, std::vector<OperatorCost>{{"aten::my_product", "0", "io"}}),
              IsEmpty());
}

// An operator on 6 numbers beside one on 4 million: neither named nor refused.
TEST(Uncosted, SmallOperatorsDoNotMatter) {
  Start g(dense({1024, 4096}));
  const ValueId small = g.input("small", dense({6}));
  g.call("own", "my_small_one", {{"self", small}}, dense({6}));
  g.call("y", "sum", {{"self", g.x}}, dense({}));
  const auto found = uncosted_operators(g.build(), {});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_FALSE(found[0].matters());
  EXPECT_FALSE(found[0].decides());
}

}  // namespace
}  // namespace pfeife
