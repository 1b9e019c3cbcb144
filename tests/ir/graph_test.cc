#include "planner/ir/model/graph.h"

#include <gtest/gtest.h>

namespace pfeife {
namespace {

Graph one_linear() {
  Graph graph;
  graph.name = "tiny";
  graph.microbatch_size = 2;
  graph.values = {
      {.name = "p_w",
       .role = ValueRole::Parameter,
       .type = {DType::Float32, {3, 4}, {4, 1}, 0},
       .parameter = ParameterId{0},
       .requires_grad = true,
       .source_name = "w"},
      {.name = "x", .role = ValueRole::Input, .type = {DType::BFloat16, {2, 4}, {4, 1}, 0}},
      {.name = "y", .type = {DType::Float32, {2, 3}, {3, 1}, 0}, .producer = NodeId{0}},
  };
  graph.parameters = {
      {.names = {"w", "head.w"}, .value = ValueId{0}, .type = graph.values[0].type}};
  graph.nodes = {{.name = "y",
                  .op = "aten::linear",
                  .arguments = {{"input", ValueId{1}}, {"weight", ValueId{0}}},
                  .outputs = {ValueId{2}},
                  .module_path = "layers.0"}};
  graph.inputs = {ValueId{1}};
  graph.outputs = {ValueId{2}};
  return graph;
}

TEST(TensorType, BytesAreElementsTimesTheirSize) {
  EXPECT_EQ((TensorType{DType::Float32, {3, 4}, {4, 1}, 0}.bytes()), Bytes{48});
  EXPECT_EQ((TensorType{DType::BFloat16, {3, 0}, {1, 1}, 0}.bytes()), Bytes{0});
  EXPECT_EQ((TensorType{DType::Complex128, {}, {}, 0}.bytes()), Bytes{16});
}

TEST(DType, NamesSizesAndGradients) {
  EXPECT_EQ(to_string(DType::BFloat16), "bfloat16");
  EXPECT_EQ(element_size(DType::Bool), Bytes{1});
  EXPECT_EQ(element_size(DType::Int64), Bytes{8});
  EXPECT_TRUE(is_floating(DType::Float8E5M2));
  EXPECT_FALSE(is_floating(DType::Int64));
}

TEST(Graph, IsPrintedANodeALine) {
  EXPECT_EQ(to_string(one_linear()),
            "graph tiny, microbatch of 2\n"
            "  parameter %p_w : float32[3, 4] w head.w\n"
            "  input %x : bfloat16[2, 4]\n"
            "  %y : float32[2, 3] = aten::linear(input=%x, weight=%p_w)  # layers.0\n"
            "  return [%y]\n");
}

TEST(Graph, ArgumentsOfEveryKindArePrinted) {
  Graph graph = one_linear();
  graph.nodes[0].overload = "out";
  graph.nodes[0].arguments = {
      {"a", std::monostate{}},
      {"b", std::vector<std::optional<ValueId>>{std::nullopt, ValueId{1}}},
      {"c", std::vector<std::int64_t>{1, -1}},
      {"d", 1.0},
      {"e", std::vector<bool>{true, false}},
      {"f", std::string("mean")},
      {"g", DType::Int64},
      {"h", DeviceArgument{"cpu"}},
      {"i", 1e-05},
      {"j", true},
  };
  EXPECT_NE(
      to_string(graph).find("aten::linear.out(a=None, b=[None, %x], c=[1, -1], d=1.0, "
                            "e=[true, false], f=\"mean\", g=int64, h=device cpu, i=1e-05, j=true)"),
      std::string::npos)
      << to_string(graph);
}

TEST(Node, InputsAreListedInArgumentOrderWithListsAndRepetitions) {
  Node node;
  node.arguments = {{"tensors", std::vector<ValueId>{ValueId{3}, ValueId{1}}},
                    {"dim", std::int64_t{0}},
                    {"maybe", std::vector<std::optional<ValueId>>{std::nullopt, ValueId{2}}},
                    {"other", ValueId{3}}};
  EXPECT_EQ(inputs_of(node),
            (std::vector<ValueId>{ValueId{3}, ValueId{1}, ValueId{2}, ValueId{3}}));
  EXPECT_EQ(node.find("dim"), &node.arguments[1]);
  EXPECT_EQ(node.find("alpha"), nullptr);
}

}  // namespace
}  // namespace pfeife
