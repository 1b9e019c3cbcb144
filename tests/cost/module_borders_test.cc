#include <gmock/gmock.h>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/layers/grouping_parts.h"
#include "planner/cost/operators/roofline.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using ::testing::ElementsAre;
using testing::GraphBuilder;

/// A stem, then blocks: a linear, an activation, and the sum with what came in.
struct Blocks : GraphBuilder {
  Blocks() {
    const ValueId data = input("data", dense({4, 8})), w = parameter("w", dense({8, 8}));
    x = call("stem", "linear", {{"input", data}, {"weight", w}}, dense({4, 8}));
    modules.emplace_back("stem");
  }
  /// `fc`, `act`, `sum`: modules in which these are called.
  void block(const std::string& name, const std::string& fc, const std::string& act,
             const std::string& sum, const char* add = "add") {
    const ValueId w = parameter(name + ".w", dense({8, 8}));
    const ValueId y = call(name + ".y", "linear", {{"input", x}, {"weight", w}}, dense({4, 8}));
    const ValueId g = call(name + ".g", "gelu", {{"self", y}}, dense({4, 8}));
    x = call(name + ".x", add, {{"self", x}, {"other", g}}, dense({4, 8}));
    modules.insert(modules.end(), {fc, act, sum});
  }
  Graph finish() {
    call("loss", "sum", {{"self", x}}, dense({}));
    modules.emplace_back("");
    Graph graph = build();
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) graph.nodes[n].module_path = modules[n];
    return graph;
  }
  ValueId x;
  std::vector<std::string> modules;
};

std::vector<NodeBorder> borders(const Graph& graph) {
  const GraphFacts facts(graph, Precision::Fp32);
  return module_borders(facts, local_nodes(facts));
}

/// Names of the nodes behind which blocks end.
std::vector<std::string> ends(const Graph& graph) {
  std::vector<std::string> names;
  const std::vector<NodeBorder> found = borders(graph);
  for (std::size_t n = 0; n < found.size(); ++n)
    if (found[n].between_blocks()) names.push_back(graph.nodes[n].name);
  return names;
}

// Within a block what came in and what was made of it pass: two values.
TEST(ModuleBorders, OfBlocksAreWhereOneValuePasses) {
  Blocks g;
  g.block("a", "a.fc", "a.act", "a");
  g.block("b", "b.fc", "b.act", "b");
  const Graph graph = g.finish();
  EXPECT_THAT(ends(graph), ElementsAre("stem", "a.x", "b.x"));
  const std::vector<NodeBorder> found = borders(graph);
  EXPECT_EQ(found[0].ended, "stem");
  EXPECT_EQ(found[0].begun, "a");  // and a.fc within it
  EXPECT_EQ(found[1].ended, "a.fc");
  EXPECT_EQ(found[1].begun, "a.act");
  EXPECT_FALSE(found[1].one_value);
  EXPECT_EQ(found[3].ended, "a");
  EXPECT_EQ(found[3].begun, "b");
}

// As TinyGpt does: the model itself adds, and its modules are in a list, which nobody calls.
TEST(ModuleBorders, BeginWithACallWhereTheModelItselfEndsABlock) {
  Blocks g;
  g.block("a", "layers.0.fc", "layers.0.act", "");
  g.block("b", "layers.1.fc", "layers.1.act", "");
  const Graph graph = g.finish();
  EXPECT_THAT(ends(graph), ElementsAre("stem", "a.x"));  // behind b.x no module is called
  EXPECT_EQ(borders(graph)[3].ended, "");
  EXPECT_EQ(borders(graph)[3].begun, "layers.1.fc");
}

TEST(ModuleBorders, AModuleThatIsCalledTwiceHasNone) {
  Blocks g;
  g.block("a", "fc0", "act", "");
  g.block("b", "fc1", "act", "");
  const std::vector<NodeBorder> found = borders(g.finish());
  EXPECT_EQ(found[1].ended, "fc0");
  EXPECT_EQ(found[1].begun, "");
  EXPECT_EQ(found[2].ended, "");
}

// The sum is written into what came in: between a.g and it nothing may be cut, whatever passes.
TEST(ModuleBorders, AreNotWhereAResultIsWrittenIntoBehindThem) {
  Blocks g;
  const ValueId w = g.parameter("c.w", dense({8, 8}));
  g.x = g.call("c.y", "linear", {{"input", g.x}, {"weight", w}}, dense({4, 8}));
  g.x = g.call("c.x", "relu_", {{"self", g.x}}, dense({4, 8}));
  g.modules.insert(g.modules.end(), {"c", "d"});
  EXPECT_THAT(ends(g.finish()), ElementsAre("stem", "c.x"));
}

TEST(ModuleBorders, OfBlocksEndTheirLayers) {
  Blocks g;
  g.block("a", "a.fc", "a.act", "a");
  g.block("b", "b.fc", "b.act", "b");
  const Graph graph = g.finish();
  DeviceKind kind;
  kind.memory_bandwidth = {1e12};
  kind.peak = {{"fp32", {1e13}}};
  kind.gemm_efficiency = {{"fp32", {{{Flops{1}, 0.5}}}}};
  const FactsByPrecision facts(graph);
  const std::vector<Profile> profiles{roofline_profile(facts, kind, {})};
  const Layers whole = layers_from_graph(facts, profiles, Grouping::Blocks);
  std::vector<std::string> last, end, begin;
  for (const Layer& layer : whole.layers) {
    last.push_back(layer.name);
    end.push_back(layer.ends_module);
    begin.push_back(layer.begins_module);
    EXPECT_EQ(layer.no_cut_after, "");
  }
  EXPECT_THAT(last, ElementsAre("stem", "a.x", "b.x", "loss"));
  EXPECT_THAT(end, ElementsAre("stem", "a", "b", ""));
  EXPECT_THAT(begin, ElementsAre("", "a", "b", ""));
  // What a layer costs is what its nodes cost, however they are grouped.
  const Layers fine = layers_from_graph(facts, profiles);
  Nanoseconds of_whole{0}, of_fine{0};
  for (const Layer& layer : whole.layers) of_whole += layer.times[0].forward;
  for (const Layer& layer : fine.layers) of_fine += layer.times[0].forward;
  EXPECT_EQ(of_whole, of_fine);
  EXPECT_EQ(whole.values.size(), 3u);
}

}  // namespace
}  // namespace pfeife
