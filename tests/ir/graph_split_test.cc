#include "planner/ir/schedule/graph_split.h"

#include <gtest/gtest.h>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Each node makes one value.
struct NodesInARow {
  Graph graph;
  std::vector<NodeEffects> effects;

  ValueId call(const std::string& op, std::vector<ValueId> inputs, NodeEffects effect = {}) {
    const ValueId out{graph.values.size()};
    graph.values.push_back({.name = "v", .producer = NodeId{graph.nodes.size()}});
    Node node{.name = op, .op = op, .outputs = {out}};
    for (const ValueId input : inputs) node.arguments.push_back({"a", input});
    graph.nodes.push_back(node);
    for (const ValueId input : effect.writes) effect.aliases.emplace_back(input, out);
    effects.push_back(effect);
    return out;
  }
  ValueId view(ValueId base) {
    return call("aten::view", {base}, {.aliases = {{base, ValueId{graph.values.size()}}}});
  }
  ValueId add_to(ValueId base) { return call("aten::add_", {base, base}, {.writes = {base}}); }
};

// Three stages: made and written | view | read. No stage writes what another reads afterwards, so
// each cut is legal, and so are both.
TEST(SplitGraph, TakesAViewOfWhatAnEarlierStageWrote) {
  NodesInARow b;
  b.graph.values.push_back({.name = "x", .role = ValueRole::Input});
  const ValueId y = b.call("aten::linear", {ValueId{0}});
  b.add_to(y);
  const ValueId view = b.view(y);
  b.graph.outputs = {b.call("aten::neg", {view})};
  EXPECT_EQ(legal_cuts(b.graph, b.effects), (std::vector{NodeId{1}, NodeId{2}}));
  const std::vector<NodeId> both{NodeId{1}, NodeId{2}};
  EXPECT_EQ(split_graph(b.graph, b.effects, both).crossings,
            (std::vector<Crossing>{{y, StageId{0}, StageId{1}}, {view, StageId{1}, StageId{2}}}));
}

// Made | view | written: the first stage's value would change behind its back.
TEST(SplitGraph, RefusesAWriteIntoWhatAnEarlierStageMade) {
  NodesInARow b;
  b.graph.values.push_back({.name = "x", .role = ValueRole::Input});
  const ValueId y = b.call("aten::linear", {ValueId{0}});
  b.graph.outputs = {b.add_to(b.view(y))};
  EXPECT_TRUE(legal_cuts(b.graph, b.effects).empty());
  const std::vector<NodeId> both{NodeId{0}, NodeId{1}};
  EXPECT_THROW(split_graph(b.graph, b.effects, both), ConfigError);
}

}  // namespace
}  // namespace pfeife
