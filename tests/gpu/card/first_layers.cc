#include "tests/gpu/card/first_layers.h"

#include <algorithm>
#include <set>

#include "planner/ir/basics/error.h"

namespace pfeife::card {
namespace {

/// N of "...layers.N..."; -1 if the node is in no layer.
int layer_of(const Node& node) {
  const std::string word = "layers.";
  const auto at = node.module_path.find(word);
  if (at == node.module_path.npos) return -1;
  const std::string number = node.module_path.substr(at + word.size());
  return number.empty() || !std::isdigit(static_cast<unsigned char>(number[0])) ? -1
                                                                                : std::stoi(number);
}

void replace(ArgumentValue& argument, ValueId from, ValueId to) {
  if (auto* value = std::get_if<ValueId>(&argument)) {
    if (*value == from) *value = to;
  } else if (auto* list = std::get_if<std::vector<ValueId>>(&argument)) {
    std::ranges::replace(*list, from, to);
  } else if (auto* optional = std::get_if<std::vector<std::optional<ValueId>>>(&argument)) {
    std::ranges::replace(*optional, std::optional(from), std::optional(to));
  }
}

}  // namespace

Graph first_layers(const Graph& graph, int count) {
  const auto dropped = [&](const Node& node) { return layer_of(node) >= count; };
  const auto producer = [&](ValueId v) -> const Node* {
    const auto node = graph.value(v).producer;
    return node ? &graph.nodes[node->index()] : nullptr;
  };
  std::set<ValueId> into, out_of;  // of the dropped nodes, from and to layers
  for (const Node& node : graph.nodes)
    for (const ValueId v : inputs_of(node)) {
      const Node* made = producer(v);
      if (made == nullptr || dropped(*made) == dropped(node)) continue;
      if (dropped(*made)) out_of.insert(v);
      if (dropped(node) && layer_of(*made) == count - 1) into.insert(v);
    }
  if (into.size() != 1 || out_of.size() != 1)
    throw ConfigError(
        {graph.name},
        stream_all("has no ", count, " layers that hand one tensor on (", into.size(),
                   " go into layer ", count, ", ", out_of.size(), " out of the last)"));
  Graph shorter = graph;
  shorter.name += stream_all(", ", count, " layers");
  shorter.digest += stream_all("+layers=", count);
  shorter.nodes.clear();
  for (Value& value : shorter.values) value.producer.reset();
  for (const Node& node : graph.nodes) {
    if (dropped(node)) continue;
    const NodeId id{static_cast<std::int64_t>(shorter.nodes.size())};
    Node& kept = shorter.nodes.emplace_back(node);
    for (Argument& argument : kept.arguments)
      replace(argument.value, *out_of.begin(), *into.begin());
    for (const ValueId v : kept.outputs) shorter.values[v.index()].producer = id;
  }
  return shorter;
}

}  // namespace pfeife::card
