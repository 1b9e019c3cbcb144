// From nodes to layers, on graphs small enough to group by hand.
#include "planner/cost/layers/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/layers/grouping_parts.h"
#include "planner/cost/operators/roofline.h"
#include "planner/cost/operators/table_effects.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/graph_split.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::HasSubstr;
using testing::Sizes;

DeviceKind overhead_device() {
  DeviceKind kind;
  kind.name = "test";
  kind.memory_bandwidth = {1e12};
  kind.peak = {{"fp32", {1e13}}};
  kind.gemm_efficiency = {{"fp32", {{{Flops{1}, 0.5}}}}};
  kind.kernel_overhead = Nanoseconds{1000};
  return kind;
}
Layers layers(const Graph& graph) {
  return layers_from_graph(graph, {roofline_profile(graph, overhead_device(), {})});
}
std::vector<bool> local(const Graph& graph) {
  return local_nodes(GraphFacts(graph, Precision::Fp32));
}
std::vector<std::vector<std::string>> names(const Graph& graph, const Layers& layers) {
  std::vector<std::vector<std::string>> list;
  for (const Layer& layer : layers.layers) {
    list.emplace_back();
    for (const NodeId n : layer.nodes) list.back().push_back(graph.node(n).name);
  }
  return list;
}
const LayerValue* value(const Layers& layers, const std::string& name) {
  const auto at = std::ranges::find(layers.values, name, &LayerValue::name);
  return at == layers.values.end() ? nullptr : &*at;
}
using List = std::vector<std::string>;

/// Blocks of linear, gelu and a sum with the block's input: residual[i + 1] = residual[i] + ...
struct Residual : GraphBuilder {
  Residual() { x = input("x", dense({4, 8})); }
  void block(const std::string& name) {
    const ValueId w = parameter(name + ".w", dense({8, 8}));
    const ValueId y = call(name + ".y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
    const ValueId g = call(name + ".g", "gelu", {{"self", y}}, dense({4, 8}));
    x = call(name + ".x", "add", {{"self", x}, {"other", g}}, dense({4, 8}));
  }
  Graph finish() {
    call("loss", "sum", {{"self", x}}, dense({}));
    return build();
  }
  ValueId x;
};

// y is kept by gelu: grows. g is new: grows. The sum frees g, or the block's input as well: does
// not grow, and joins the next linear. The loss of 4 B frees x, so it joins the last layer.
TEST(Layers, EndWithANodeThatGrowsMemory) {
  Residual g;
  g.block("a");
  g.block("b");
  const Graph graph = g.finish();
  EXPECT_THAT(names(graph, layers(graph)), ElementsAre(List{"a.y"}, List{"a.g"}, List{"a.x", "b.y"},
                                                       List{"b.g"}, List{"b.x", "loss"}));
}

TEST(Layers, ValuesGoFromTheirLayerToAllThatReadThem) {
  Residual g;
  g.block("a");
  g.block("b");
  const Graph graph = g.finish();
  const Layers made = layers(graph);
  EXPECT_EQ(value(made, "x"), nullptr);  // an input: everybody has it
  ASSERT_NE(value(made, "a.y"), nullptr);
  EXPECT_THAT(value(made, "a.y")->consumers, ElementsAre(LayerId{1}));
  const LayerValue* skip = value(made, "a.x");
  ASSERT_NE(skip, nullptr);
  EXPECT_EQ(skip->producer, LayerId{2});
  EXPECT_THAT(skip->consumers, ElementsAre(LayerId{4}));  // b.y is in its own layer
  EXPECT_EQ(skip->bytes, Bytes{128});
  EXPECT_EQ(skip->gradient_bytes, Bytes{128});
}

// A batch without samples: all values and gradients have no bytes. What needs no gradient gets
// none, whatever its size.
TEST(Layers, GradientsComeBackToValuesThatRequireThem) {
  Residual g;
  g.block("a");
  g.block("b");
  Graph graph = g.finish();
  for (Value& v : graph.values) {
    v.requires_grad = v.name != "a.y";
    if (v.name == "a.x") v.type = dense({0, 8});
  }
  const Layers made = layers(graph);
  ASSERT_NE(value(made, "a.x"), nullptr);
  EXPECT_EQ(value(made, "a.x")->bytes, Bytes{0});
  EXPECT_TRUE(value(made, "a.x")->has_gradient);
  EXPECT_EQ(value(made, "a.y")->bytes, Bytes{128});
  EXPECT_FALSE(value(made, "a.y")->has_gradient);
}

// What gelu keeps is a value that may be received; what the first linear keeps is an input.
TEST(Layers, StoragesKnowTheValueThatMayCross) {
  Residual g;
  g.block("a");
  const Graph graph = g.finish();
  const Layers made = layers(graph);
  ASSERT_EQ(made.storages.size(), 2u);
  EXPECT_EQ(made.storages[0].value, std::nullopt);
  EXPECT_THAT(made.storages[0].savers, ElementsAre(LayerId{0}));
  EXPECT_THAT(made.storages[0].weight_savers, ElementsAre(LayerId{0}));
  ASSERT_TRUE(made.storages[1].value.has_value());
  EXPECT_EQ(made.values[*made.storages[1].value].name, "a.y");
  EXPECT_THAT(made.storages[1].savers, ElementsAre(LayerId{1}));
}

TEST(Layers, ModelInputsAreChargedToTheirFirstReader) {
  Residual g;
  g.block("a");
  const Graph graph = g.finish();
  const Layers made = layers(graph);
  EXPECT_EQ(made.layers[0].model_input, Bytes{128});  // read again by a.x, in another layer
  for (std::size_t l = 1; l < made.size(); ++l) EXPECT_EQ(made.layers[l].model_input, Bytes{0});
}

TEST(Layers, TiedParametersHaveAllTheirUsers) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const ValueId frozen = g.parameter("frozen", dense({8}), false);
  g.parameter("unused", dense({2}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  const ValueId z = g.call("z", "tanh", {{"self", y}}, dense({4, 8}));
  const ValueId s = g.call("s", "mul", {{"self", z}, {"other", frozen}}, dense({4, 8}));
  g.call("again", "linear", {{"input", s}, {"weight", w}}, dense({4, 8}));
  const Layers made = layers(g.build());
  EXPECT_EQ(made.parameters[0].users.size(), 2u);
  EXPECT_EQ(made.parameters[0].gradient, Bytes{256});
  EXPECT_EQ(made.parameters[0].state, Bytes{512});  // Adam
  EXPECT_EQ(made.parameters[1].gradient, Bytes{0});
  EXPECT_THAT(made.parameters[2].users, ElementsAre(LayerId{0}));
}

// ---- local nodes ----

/// positions = arange + 0, used by the second and the third of three linears.
Graph with_positions() {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({8, 8}));
  const ValueId arange = g.call("arange", "arange", {{"end", std::int64_t{8}}}, dense({8}));
  const ValueId positions =
      g.call("positions", "add", {{"self", arange}, {"other", std::int64_t{0}}}, dense({8}));
  ValueId y = x;
  for (const std::string name : {"a", "b", "c"}) {
    const ValueId w = g.parameter(name + ".w", dense({8, 8}));
    const ValueId p = name == "a" ? y
                                  : g.call(name + ".p", "mul", {{"self", y}, {"other", positions}},
                                           dense({8, 8}));
    y = g.call(name, "linear", {{"input", p}, {"weight", w}}, dense({8, 8}));
  }
  return g.build();
}

TEST(LocalNodes, AreThoseThatDependOnNoInputAndNoParameter) {
  EXPECT_THAT(local(with_positions()), ElementsAre(true, true, false, false, false, false, false));
}

TEST(LocalNodes, GoToTheLayerThatNeedsThemFirstAndAreNotSent) {
  const Graph graph = with_positions();
  const Layers made = layers(graph);
  const auto listed = names(graph, made);
  EXPECT_THAT(listed.front(), ElementsAre("a"));
  const auto holder = std::ranges::find_if(
      listed, [](const List& layer) { return std::ranges::find(layer, "b.p") != layer.end(); });
  EXPECT_THAT(*holder, ElementsAre("arange", "positions", "b.p", "b"));
  EXPECT_EQ(value(made, "arange"), nullptr);
  EXPECT_EQ(value(made, "positions"), nullptr);
}

TEST(LocalNodes, RandomNumbersAndWrittenBuffersAreNot) {
  GraphBuilder g;
  const ValueId table = g.buffer("table", dense({8})), count = g.buffer("count", dense({8}));
  g.call("read", "cos", {{"self", table}}, dense({8}));
  g.call("counted", "add_", {{"self", count}, {"other", 1.0}}, dense({8}));
  g.call("after", "neg", {{"self", count}}, dense({8}));
  const ValueId empty = g.call("empty", "empty", {{"size", Sizes{8}}}, dense({8}));
  g.call("random", "bernoulli_", {{"self", empty}}, dense({8}));
  const ValueId ones = g.call("ones", "ones", {{"size", Sizes{8}}}, dense({8}));
  g.call("idle", "dropout", {{"input", ones}, {"p", 0.0}, {"train", true}}, dense({8}));
  g.call("drops", "dropout", {{"input", ones}, {"p", 0.5}, {"train", true}}, dense({8}));
  g.call("unknown", "no_such_operator", {{"self", ones}}, dense({8}));
  // Also `empty`, for what bernoulli_ writes there. An operator without a row reads what it is
  // given.
  EXPECT_THAT(local(g.build()),
              ElementsAre(true, false, false, false, false, true, true, false, true));
}

// first = x[0] is read behind the cut alone. Planner and runtimes have one answer: the second
// stage, which has x, makes it, and nothing but `up` is sent. A copy of x, and a view of what is
// written in place, are sent.
TEST(LocalNodes, ViewsOfInputsAreMadeWhereTheyAreRead) {
  const auto crossing = [](const std::string& op, bool written) {
    GraphBuilder g;
    const ValueId x = g.input("x", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
    const ValueId first = g.call("first", op, {{"self", x}}, dense({8}));
    if (written) g.call("fill", "zero_", {{"self", x}}, dense({4, 8}));
    const ValueId up = g.call("up", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
    g.call("sum", "add", {{"self", up}, {"other", first}}, dense({4, 8}));
    const Graph graph = g.build();
    const NodeId cut{written ? 2 : 1};
    const GraphSplit split = split_graph(graph, table_effects(graph), {&cut, 1});
    List sent, planned;
    for (const Crossing& c : split.crossings) sent.push_back(graph.value(c.value).name);
    for (const LayerValue& v : layers(graph).values) planned.push_back(v.name);
    EXPECT_EQ(sent, planned);
    return sent;
  };
  EXPECT_THAT(crossing("select", false), ElementsAre("up"));
  EXPECT_THAT(crossing("neg", false), ElementsAre("first", "up"));
  EXPECT_THAT(crossing("select", true), ElementsAre("first", "up"));
}

// mask = zeros like x (only its shape); mask[0] is filled: all local, the fill too. A second mask
// is filled from x: not local, nor anything of it from the start.
TEST(LocalNodes, WritesTaintTheWholeStorage) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({2, 4}));
  const ValueId mask = g.call("mask", "zeros_like", {{"self", x}}, dense({2, 4}));
  const ValueId row = g.call("row", "select", {{"self", mask}}, dense({4}));
  const ValueId one = g.call("one", "ones", {{"size", Sizes{}}}, dense({}));
  g.call("fill", "fill_", {{"self", row}, {"value", one}}, dense({4}));
  const ValueId other = g.call("other", "zeros_like", {{"self", x}}, dense({2, 4}));
  const ValueId other_row = g.call("other_row", "select", {{"self", other}}, dense({4}));
  const ValueId first = g.call("first", "select", {{"self", x}}, dense({4}));
  g.call("copy", "copy_", {{"self", other_row}, {"src", first}}, dense({4}));
  // `first` is a mere view of an input: local.
  EXPECT_THAT(local(g.build()), ElementsAre(true, true, true, true, false, false, true, false));
}

// The fill belongs to the layer that reads the mask, though nobody reads the fill's own result.
TEST(LocalNodes, WritersFollowTheirStorage) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({2, 4}));
  const ValueId mask = g.call("mask", "zeros", {{"size", Sizes{2, 4}}}, dense({2, 4}));
  const ValueId row = g.call("row", "select", {{"self", mask}}, dense({4}));
  g.call("fill", "fill_", {{"self", row}, {"value", 1.0}}, dense({4}));
  const ValueId w = g.parameter("w", dense({4, 4}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({2, 4}));
  const ValueId t = g.call("t", "tanh", {{"self", y}}, dense({2, 4}));
  const ValueId m = g.call("m", "mul", {{"self", t}, {"other", mask}}, dense({2, 4}));
  g.call("z", "linear", {{"input", m}, {"weight", w}}, dense({2, 4}));
  const Graph graph = g.build();
  const Layers made = layers(graph);
  const auto listed = names(graph, made);
  EXPECT_THAT(listed.front(), ElementsAre("y"));
  const auto holder = std::ranges::find_if(
      listed, [](const List& layer) { return std::ranges::find(layer, "m") != layer.end(); });
  EXPECT_THAT(*holder, ::testing::IsSupersetOf({"mask", "row", "fill"}));
  for (const Layer& layer : made.layers)
    EXPECT_THAT(layer.no_cut_after, ::testing::Not(HasSubstr("fill_")));
}

// ---- where no cut may be ----

/// Layers after which there is no cut.
std::vector<std::size_t> forbidden(const Layers& layers) {
  std::vector<std::size_t> list;
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (!layers.layers[l].no_cut_after.empty()) list.push_back(l);
  return list;
}

// y | o y.relu_() z: between them the storage of y is written. After that it only is read.
TEST(Cuts, AreForbiddenBetweenAStorageAndItsLastWrite) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  const ValueId o = g.call("o", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  const ValueId r = g.call("r", "relu_", {{"self", y}}, dense({4, 8}));
  const ValueId z = g.call("z", "linear", {{"input", r}, {"weight", w}}, dense({4, 8}));
  const ValueId u = g.call("u", "gelu", {{"self", z}}, dense({4, 8}));
  const ValueId s = g.call("s", "add", {{"self", u}, {"other", o}}, dense({4, 8}));
  g.call("v", "mul", {{"self", s}, {"other", r}}, dense({4, 8}));
  const Graph graph = g.build();
  const Layers made = layers(graph);
  ASSERT_THAT(names(graph, made),
              ElementsAre(List{"y"}, List{"o", "r"}, List{"z"}, List{"u"}, List{"s", "v"}, List{}));
  EXPECT_THAT(forbidden(made), ElementsAre(0u, 4u));
  EXPECT_EQ(made.layers[0].no_cut_after,
            "'r' (aten::relu_) changes 'y' in place, which both sides use");
  EXPECT_EQ(made.layers[4].no_cut_after, "only the model's result follows");
}

// The addition and the activation at the end of a residual block change what its last product made:
// they belong to its layer, and behind it one tensor crosses.
TEST(Cuts, AreLegalBehindAResidualBlockThatEndsInPlace) {
  GraphBuilder g;
  const ValueId data = g.input("data", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const auto linear = [&](const std::string& name, ValueId from) {
    return g.call(name, "linear", {{"input", from}, {"weight", w}}, dense({4, 8}));
  };
  const ValueId x = linear("x", data), a = linear("a", x), b = linear("b", a);
  const ValueId sum = g.call("sum", "add_", {{"self", b}, {"other", x}}, dense({4, 8}));
  const ValueId end = g.call("end", "relu_", {{"self", sum}}, dense({4, 8}));
  const ValueId c = linear("c", end);
  g.call("out", "add", {{"self", c}, {"other", end}}, dense({4, 8}));
  const Graph graph = g.build();
  const Layers made = layers(graph);
  ASSERT_THAT(names(graph, made)[2], ElementsAre("b", "sum", "end"));
  EXPECT_EQ(made.layers[2].no_cut_after, "");
  std::vector<std::string> crossing;
  for (const LayerValue& value : made.values)
    if (value.producer.index() <= 2 && value.consumers.back().index() > 2)
      crossing.push_back(value.name);
  EXPECT_THAT(crossing, ElementsAre("end"));
}

// A counter that is written first there: its layer is that of what follows.
TEST(Cuts, ABufferThatIsWrittenGoesWithItsReader) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const ValueId count = g.buffer("count", dense({}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  g.call("counted", "add_", {{"self", count}, {"other", 1.0}}, dense({}));
  g.call("z", "linear", {{"input", y}, {"weight", w}}, dense({4, 8}));
  const Graph graph = g.build();
  const Layers made = layers(graph);
  EXPECT_THAT(names(graph, made)[0], ElementsAre("y"));
}

// As below, but the third layer reads what the write returns: that is sent.
TEST(Cuts, AreLegalBetweenAWriteIntoABufferAndReadersOfItsResult) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const ValueId count = g.buffer("count", dense({8}));
  const ValueId counted = g.call("counted", "add_", {{"self", count}, {"other", 1.0}}, dense({8}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  const ValueId a = g.call("a", "gelu", {{"self", y}}, dense({4, 8}));
  const ValueId b = g.call("b", "mul", {{"self", a}, {"other", counted}}, dense({4, 8}));
  const ValueId c = g.call("c", "linear", {{"input", b}, {"weight", w}}, dense({4, 8}));
  g.call("d", "gelu", {{"self", c}}, dense({4, 8}));
  const Graph graph = g.build();
  const Layers made = layers(graph);
  EXPECT_THAT(forbidden(made), ElementsAre(made.size() - 2));
  const auto sent = std::ranges::find(made.values, "counted", &LayerValue::name);
  ASSERT_NE(sent, made.values.end());
  EXPECT_EQ(sent->bytes, Bytes{32});
  EXPECT_EQ(sent->gradient_bytes, Bytes{0});
}

// A buffer that is counted up in the first layer and read in the third: one stage must hold it.
TEST(Cuts, AreForbiddenBetweenUsesOfAWrittenBuffer) {
  GraphBuilder g;
  const ValueId x = g.input("x", dense({4, 8})), w = g.parameter("w", dense({8, 8}));
  const ValueId count = g.buffer("count", dense({8}));
  g.call("counted", "add_", {{"self", count}, {"other", 1.0}}, dense({8}));
  const ValueId y = g.call("y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
  const ValueId a = g.call("a", "gelu", {{"self", y}}, dense({4, 8}));
  const ValueId b = g.call("b", "mul", {{"self", a}, {"other", count}}, dense({4, 8}));
  const ValueId c = g.call("c", "linear", {{"input", b}, {"weight", w}}, dense({4, 8}));
  g.call("d", "gelu", {{"self", c}}, dense({4, 8}));
  const Graph graph = g.build();
  const Layers made = layers(graph);
  const auto listed = names(graph, made);
  ASSERT_THAT(listed[0], ElementsAre("counted", "y"));
  std::vector<std::size_t> expected;  // up to the layer of b
  for (std::size_t l = 0; std::ranges::find(listed[l], "b") == listed[l].end(); ++l)
    expected.push_back(l);
  ASSERT_GE(expected.size(), 2u);
  expected.push_back(made.size() - 2);
  EXPECT_EQ(forbidden(made), expected);
}

// ---- profiles ----

TEST(Layers, HaveTheTimesOfEveryDeviceKind) {
  Residual g;
  g.block("a");
  const Graph graph = g.finish();
  DeviceKind slow = overhead_device();
  slow.name = "slow";
  slow.memory_bandwidth = {1e9};
  const std::vector<Profile> profiles = {roofline_profile(graph, overhead_device(), {}),
                                         roofline_profile(graph, slow, {})};
  const Layers made = layers_from_graph(graph, profiles);
  for (std::size_t kind = 0; kind < 2; ++kind) {
    Nanoseconds sum{0};
    for (const Layer& layer : made.layers) sum += layer.times.at(kind).forward;
    for (const NodeProfile& node : profiles[kind].nodes) sum -= node.forward;
    EXPECT_EQ(sum, Nanoseconds{0});
  }
  EXPECT_GT(made.layers[0].times[1].forward, made.layers[0].times[0].forward);
  EXPECT_EQ(made.notes.size(), 2u);
  EXPECT_EQ(made.parameters[0].optimizer.size(), 2u);
}

// The candidates for cuts depend on the graph alone: a plan made for one precision names the same
// cuts in another.
TEST(Layers, AreTheSameForEveryPrecision) {
  Residual g;
  g.block("a");
  g.block("b");
  const Graph graph = g.finish();
  const Layers narrow = layers_from_graph(
      graph, {roofline_profile(graph, overhead_device(), {.precision = Precision::Bf16Amp})});
  EXPECT_EQ(names(graph, narrow), names(graph, layers(graph)));
  EXPECT_EQ(value(narrow, "a.y")->bytes, Bytes{64});
}

TEST(Layers, OfAnEmptyGraphAreRefused) {
  Graph empty;
  empty.name = "empty";
  EXPECT_THROW(layers_from_graph(empty, {Profile{}}), ConfigError);
}

}  // namespace
}  // namespace pfeife
