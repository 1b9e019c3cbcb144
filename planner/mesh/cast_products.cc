#include "planner/mesh/cast_products.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "planner/cost/operators/graph_facts.h"
#include "planner/ir/model/arguments.h"

namespace pfeife {
namespace {

constexpr std::string_view kLayers = "layers.";

/// The number of the transformer layer that a name is of; -1 = none.
std::int64_t layer_of(const std::string& name) {
  if (!name.starts_with(kLayers)) return -1;
  return std::atoll(name.c_str() + kLayers.size());
}
std::string without_layer(const std::string& name) {
  return name.substr(name.find('.', kLayers.size()) + 1);
}

bool is_wide(std::int64_t layer, const Recipe& recipe, const MeshRun& run) {
  return layer < recipe.wide_layers || layer >= run.architecture.layers - recipe.wide_layers;
}

/// The value whose storage it is a view of.
ValueId viewed(const Graph& graph, ValueId v) {
  while (graph.value(v).producer) {
    const Node& node = graph.node(*graph.value(v).producer);
    if (node.op != "aten::view" && node.op != "aten::transpose" && node.op != "aten::expand") break;
    v = first_tensor(node);
  }
  return v;
}

Bytes cast_bytes(const TensorType& type, double element) {
  return Bytes{std::llround(element * static_cast<double>(type.elements()))};
}

}  // namespace

std::vector<Format> formats_of(const RankGraph& rank, const MeshRun& run) {
  const Recipe* const recipe = find_recipe(run.format);
  if (recipe == nullptr) return {};
  std::vector<Format> formats(rank.graph.nodes.size(), Format::Wide);
  for (const NodeId n : rank.linear)
    if (!is_wide(layer_of(rank.graph.node(n).module_path), *recipe, run))
      formats[n.index()] = run.format;
  return formats;
}

void keep_casts(Profile& profile, const Graph& graph, const std::vector<Format>& formats,
                const MeshRun& run, const std::set<ValueId>& discarded) {
  const Recipe* const recipe = find_recipe(run.format);
  if (recipe == nullptr) return;
  const auto is_cast = [&](NodeId n) { return formats[n.index()] != Format::Wide; };
  for (SavedStorage& storage : profile.storages) {
    std::erase_if(storage.savers, is_cast);
    std::erase_if(storage.weight_savers, is_cast);
  }
  std::erase_if(profile.storages,
                [](const SavedStorage& storage) { return storage.savers.empty(); });
  std::map<ValueId, NodeId> keepers;  // the first reader has the cast of a value
  for (const NodeId n : nodes_of(graph)) {
    if (!is_cast(n)) continue;
    const Node& product = graph.node(n);
    NodeProfile& cost = profile.nodes[n.index()];
    const TensorType& output = graph.value(product.outputs.front()).type;
    if (cost.weight_saved >= output.bytes())  // the gradient that waits for W
      cost.weight_saved += cast_bytes(output, recipe->element_bytes) - output.bytes();
    ValueId kept = viewed(graph, first_tensor(product));
    if (!keepers.try_emplace(kept, n).second) continue;
    if (const auto& producer = graph.value(kept).producer; producer && run.sequence_parallel)
      if (const Node& node = graph.node(*producer);
          node.op == "pfeife::all_gather" && collective_axis(node) == "tp")
        kept = first_tensor(node);
    const Bytes bytes = cast_bytes(graph.value(kept).type, recipe->element_bytes);
    cost.weight_saved += bytes;
    if (discarded.contains(kept))
      cost.temporary.backward += bytes;
    else
      cost.saved += bytes;
  }
}

std::set<std::string> cast_weights(const Graph& graph, const std::vector<Format>& formats) {
  std::set<std::string> names;
  for (std::size_t n = 0; n < formats.size(); ++n)
    if (formats[n] != Format::Wide)
      names.insert(without_layer(graph.value(linear_weight(graph.nodes[n])).name));
  return names;
}

bool is_cast(const std::string& name, const std::set<std::string>& weights, const MeshRun& run) {
  const Recipe* const recipe = find_recipe(run.format);
  const std::int64_t layer = layer_of(name);
  return recipe != nullptr && layer >= 0 && !is_wide(layer, *recipe, run) &&
         weights.contains(without_layer(name));
}

}  // namespace pfeife
