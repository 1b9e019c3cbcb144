// A graph whose nodes run in another order gives the same numbers: random operators draw the same,
// operators in place see what they saw.
#include "planner/ir/model/node_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/cost/layers/linear_order.h"
#include "tests/runtime/same.h"

namespace pfeife {
namespace {

/// Batch norm's first count of batches, which nobody reads, goes last: all after it move up, random
/// operators among them. Empty where there is none.
std::vector<NodeId> count_last(const Graph& graph) {
  std::set<ValueId> read;
  for (const Node& node : graph.nodes)
    for (const ValueId v : inputs_of(node)) read.insert(v);
  std::vector<NodeId> order;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    order.emplace_back(static_cast<std::int64_t>(n));
  const auto count = std::ranges::find_if(order, [&](NodeId n) {
    return graph.node(n).op == "aten::add_" && !read.contains(graph.node(n).outputs.front());
  });
  if (count == order.end()) return {};
  std::rotate(count, count + 1, order.end());
  return order;
}

TEST(NodeOrder, ChangesNoLossAndNoGradient) {
  const ScheduleSpec spec{"1f1b", 2, 3, 1, {}, {}};
  std::set<std::string> reordered_models;
  for (const std::string& name : testing::tiny_models()) {
    testing::Model model(name);
    const testing::Outcome whole = testing::run(model.unsplit(3), model.source);
    const Graph captured = model.graph;
    std::vector<std::vector<NodeId>> orders{count_last(captured)};
    for (const std::string& order : linear_orders())
      orders.push_back(linear_order(captured, order));
    for (const std::vector<NodeId>& order : orders) {
      if (order.empty()) continue;
      model.graph = reordered(captured, order);
      model.legal = legal_cuts(model.graph, effects_of(model.graph));
      if (model.graph != captured) reordered_models.insert(name);
      const Pipeline pipeline = model.pipeline(spec);
      testing::expect_same(pipeline, testing::run(pipeline, model.source), whole, 1e-12, name);
    }
  }
  EXPECT_TRUE(reordered_models.contains("tiny_convnet"));  // dropout, batch norm, in place
  EXPECT_TRUE(reordered_models.contains("tiny_gpt"));
}

}  // namespace
}  // namespace pfeife
