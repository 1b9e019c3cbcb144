// Orders of the nodes: that they are orders, for every shipped model and for random graphs with
// in-place operators; and what they gain, against all orders of tiny graphs.
#include "planner/cost/layers/linear_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "planner/cost/operators/graph_facts.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/model/node_order.h"
#include "tests/cost/graph_builder.h"

namespace pfeife {
namespace {

using testing::dense;
using testing::GraphBuilder;

/// What a node sees of a storage that is written: which writes came before. Kept by every order
/// that gives the same numbers.
std::map<std::pair<std::string, std::string>, std::vector<std::string>> writes_seen(
    const Graph& graph) {
  const GraphFacts facts(graph, Precision::Fp32);
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> seen;
  std::map<ValueId, std::vector<std::string>> writes;
  for (const NodeId n : nodes_of(graph)) {
    std::vector<ValueId> touched;
    for (const ValueId v : facts.inputs(n)) touched.push_back(facts.storage(v));
    for (const ValueId v : graph.node(n).outputs) touched.push_back(facts.storage(v));
    for (const ValueId s : touched)
      if (writes.contains(s)) seen[{graph.node(n).name, graph.value(s).name}] = writes[s];
    for (const Aliasing::Write& write : facts.aliases.writes)
      if (write.node == n) writes[write.storage].push_back(graph.node(n).name);
  }
  return seen;
}

/// Bytes of the results that are read on the other side, over all places between two nodes.
std::int64_t crossing(const Graph& graph) {
  std::int64_t sum = 0;
  std::vector<std::size_t> last(graph.values.size(), 0);
  for (const NodeId n : nodes_of(graph))
    for (const ValueId v : inputs_of(graph.node(n))) last[v.index()] = n.index();
  for (std::size_t v = 0; v < last.size(); ++v)
    if (const Value& value = graph.values[v]; value.producer && last[v] > value.producer->index())
      sum +=
          value.type.bytes().value * static_cast<std::int64_t>(last[v] - value.producer->index());
  return sum;
}

class ShippedModel : public ::testing::TestWithParam<const char*> {};
TEST_P(ShippedModel, KeepsWhatItsNodesReadInEveryOrder) {
  const Graph graph =
      read_pt2(std::string(PFEIFE_SOURCE_DIR "/configs/models/") + GetParam() + ".pt2");
  const auto seen = writes_seen(graph);
  for (const std::string& name : linear_orders()) {
    const std::vector<NodeId> order = linear_order(graph, name);
    ASSERT_EQ(no_order_because(graph, order), "") << name;
    const Graph other = reordered(graph, order);
    EXPECT_EQ(writes_seen(other), seen) << name;
    EXPECT_EQ(other == graph, name == "captured" || order == nodes_of(graph));
    // Back again.
    std::vector<NodeId> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) back[order[i].index()] = NodeId{i};
    EXPECT_EQ(reordered(other, back), graph) << name;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ShippedModel,
                         ::testing::Values("tiny_convnet", "tiny_unet", "tiny_shared", "tiny_gpt",
                                           "resnet50", "densenet121", "swin_b", "t5_large",
                                           "gpt2_large"));

/// Seven operators on values of very different sizes, some in place.
Graph random_graph(std::mt19937& random) {
  GraphBuilder builder;
  const auto type = [&] { return dense({1 << random() % 8}); };
  std::vector<ValueId> values{builder.input("x", type()), builder.input("y", type())};
  for (int n = 0; n < 7; ++n) {
    const std::string name = "n" + std::to_string(n);
    const ValueId a = values[random() % values.size()], b = values[random() % values.size()];
    if (random() % 4 == 0)
      values.push_back(builder.call(name, "relu_", {{"self", a}}, dense({4})));
    else
      values.push_back(builder.call(name, "add", {{"self", a}, {"other", b}}, type()));
  }
  return builder.build();
}

TEST(LinearOrder, OfRandomGraphsIsOneAndSavesWhatBruteForceAllows) {
  std::mt19937 random(3);
  std::int64_t captured = 0, best = 0;
  std::map<std::string, std::int64_t> sum;
  for (int round = 0; round < 25; ++round) {
    const Graph graph = random_graph(random);
    const auto seen = writes_seen(graph);
    const auto valid = [&](const std::vector<NodeId>& order) {
      return no_order_because(graph, order).empty() && writes_seen(reordered(graph, order)) == seen;
    };
    std::int64_t least = crossing(graph);
    std::vector<NodeId> order = nodes_of(graph);
    do
      if (no_order_because(graph, order).empty()) {
        const Graph other = reordered(graph, order);
        if (crossing(other) < least && writes_seen(other) == seen) least = crossing(other);
      }
    while (std::ranges::next_permutation(order).found);
    captured += crossing(graph), best += least;
    for (const std::string& name : linear_orders()) {
      const std::vector<NodeId> found = linear_order(graph, name);
      ASSERT_TRUE(valid(found)) << name << " in round " << round;
      const std::int64_t bytes = crossing(reordered(graph, found));
      EXPECT_GE(bytes, least);
      sum[name] += bytes;
    }
  }
  EXPECT_EQ(sum["captured"], captured);
  // Greedy is not best, but takes back most of what a random order loses.
  EXPECT_LT(sum["least_live"] - best, (captured - best) / 2);
  EXPECT_LT(sum["depth_first"], captured);
}

TEST(LinearOrder, RunsALongBranchWhenItIsNeeded) {
  // Two large values, made at once, each for a result of its own: the second can wait.
  GraphBuilder builder;
  const ValueId x = builder.input("x", dense({2}));
  const ValueId a = builder.call("a", "relu", {{"self", x}}, dense({1000}));
  const ValueId b = builder.call("b", "relu", {{"self", x}}, dense({1000}));
  builder.call("c", "relu", {{"self", a}}, dense({2}));
  builder.call("d", "relu", {{"self", b}}, dense({2}));
  const Graph graph = builder.build();
  const std::vector<NodeId> expected{NodeId{0}, NodeId{2}, NodeId{1}, NodeId{3}};
  EXPECT_EQ(linear_order(graph, "depth_first"), expected);
  EXPECT_EQ(linear_order(graph, "least_live"), expected);
}

TEST(NodeOrder, SaysWhatIsWrong) {
  GraphBuilder builder;
  const ValueId x = builder.input("x", dense({2}));
  const ValueId a = builder.call("a", "relu", {{"self", x}}, dense({2}));
  builder.call("b", "relu", {{"self", a}}, dense({2}));
  const Graph graph = builder.build();
  EXPECT_EQ(no_order_because(graph, {NodeId{1}, NodeId{0}}),
            "'b' comes before 'a', whose result it reads");
  EXPECT_EQ(no_order_because(graph, {NodeId{0}, NodeId{0}}), "node 0 is there twice");
  EXPECT_EQ(no_order_because(graph, {NodeId{0}, NodeId{2}}), "there is no node 2");
  EXPECT_EQ(no_order_because(graph, {NodeId{0}}), "it has 1 nodes, the graph 2");
}

}  // namespace
}  // namespace pfeife
