#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "planner/io/model/imported_layers.h"

namespace pfeife {
namespace {

/// Positions of the nodes in the linear order (Kahn 1962, smallest index first).
std::vector<std::size_t> topological_positions(const ProfileGraph& graph) {
  std::vector<std::vector<std::size_t>> readers(graph.nodes.size());
  std::vector<std::size_t> waiting_for(graph.nodes.size(), 0);
  for (const ProfileEdge& edge : graph.edges) {
    readers[edge.from].push_back(edge.to);
    ++waiting_for[edge.to];
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (waiting_for[node] == 0) ready.push(node);
  std::vector<std::size_t> position(graph.nodes.size());
  std::size_t placed = 0;
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    position[node] = placed++;
    for (const std::size_t reader : readers[node])
      if (--waiting_for[reader] == 0) ready.push(reader);
  }
  if (placed == graph.nodes.size()) return position;
  const auto stuck = std::ranges::find_if(waiting_for, [](std::size_t n) { return n > 0; });
  throw ConfigError({graph.file},
                    "the edges run in a circle; one node on it or behind it is '" +
                        graph.nodes[static_cast<std::size_t>(stuck - waiting_for.begin())].name +
                        "'");
}

void add_node(Layers& layers, const ProfileNode& node, const ImportOptions& options) {
  const LayerId id = LayerId{layers.size()};
  Layer layer;
  layer.name = node.name;
  layer.times.assign(options.device_kinds, node.times);
  layer.saved = node.saved;
  layers.layers.push_back(std::move(layer));
  if (node.parameters == Bytes{0} && node.gradients == Bytes{0}) return;
  layers.parameters.push_back({node.name,
                               node.parameters,
                               node.gradients,
                               optimizer_state(options.training.optimizer, node.parameters),
                               {id},
                               std::vector<Nanoseconds>(options.device_kinds, Nanoseconds{0})});
}

void add_values(Layers& layers, const ProfileGraph& graph,
                const std::vector<std::size_t>& position) {
  std::map<std::tuple<std::size_t, int, Bytes>, std::vector<LayerId>> readers_of;
  for (const ProfileEdge& edge : graph.edges)
    readers_of[{position[edge.from], edge.output, edge.bytes}].push_back(
        LayerId{position[edge.to]});
  for (auto& [key, readers] : readers_of) {
    const auto& [from, output, bytes] = key;
    std::ranges::sort(readers);
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    layers.values.push_back(
        {layers.layers[from].name, LayerId{from}, readers, bytes, bytes, std::nullopt});
  }
}

}  // namespace

Layers layers_of_profile(const ProfileGraph& graph, const ImportOptions& options) {
  if (graph.nodes.empty()) throw ConfigError({graph.file}, "holds no node");
  const std::vector<std::size_t> position = topological_positions(graph);
  std::vector<const ProfileNode*> in_order(graph.nodes.size());
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    in_order[position[node]] = &graph.nodes[node];
  Layers layers;
  layers.name = std::filesystem::path(graph.file).filename().string();
  layers.name = layers.name.substr(0, layers.name.find('.'));
  layers.order = "topological";
  layers.microbatch_size = options.training.microbatch_size;
  for (const ProfileNode* node : in_order) add_node(layers, *node, options);
  add_values(layers, graph, position);
  return layers;
}

LayerTimes split_backward(Nanoseconds forward, Nanoseconds backward) {
  LayerTimes times;
  times.forward = forward;
  times.backward_input = backward / 2;
  times.backward_weight = backward - times.backward_input;
  return times;
}

LayerTimes split_forward_backward(Nanoseconds both) {
  return split_backward(both / 3, both - both / 3);
}

}  // namespace pfeife
