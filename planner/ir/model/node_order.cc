#include "planner/ir/model/node_order.h"

#include "planner/ir/basics/error.h"

namespace pfeife {

std::string no_order_because(const Graph& graph, const std::vector<NodeId>& order) {
  if (order.size() != graph.nodes.size())
    return stream_all("it has ", order.size(), " nodes, the graph ", graph.nodes.size());
  std::vector<bool> there(graph.nodes.size(), false);
  for (const NodeId n : order) {
    if (n.value < 0 || n.index() >= there.size()) return stream_all("there is no node ", n.value);
    if (there[n.index()]) return stream_all("node ", n.value, " is there twice");
    for (const ValueId v : inputs_of(graph.node(n)))
      if (const auto& producer = graph.value(v).producer; producer && !there[producer->index()])
        return stream_all("'", graph.node(n).name, "' comes before '", graph.node(*producer).name,
                          "', whose result it reads");
    there[n.index()] = true;
  }
  return "";
}

Graph reordered(const Graph& graph, const std::vector<NodeId>& order) {
  PFEIFE_CHECK(no_order_because(graph, order).empty(), no_order_because(graph, order));
  Graph result = graph;
  std::vector<NodeId> place(order.size());  // [node of `graph`] its new number
  for (std::size_t i = 0; i < order.size(); ++i) {
    result.nodes[i] = graph.node(order[i]);
    place[order[i].index()] = NodeId{i};
  }
  for (Value& value : result.values)
    if (value.producer) value.producer = place[value.producer->index()];
  return result;
}

}  // namespace pfeife
