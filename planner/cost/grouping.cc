#include "planner/cost/grouping.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/cost/autocast.h"
#include "planner/cost/operators.h"
#include "planner/ir/error.h"

namespace pfeife {

std::vector<bool> input_independent(const Graph& graph, const Aliasing& aliases) {
  std::vector<bool> dependent(graph.values.size(), false);
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    dependent[v] =
        graph.values[v].role == ValueRole::Input || graph.values[v].role == ValueRole::Parameter;
  for (const Aliasing::Write& write : aliases.writes)
    if (graph.value(write.storage).role == ValueRole::Buffer)
      dependent[write.storage.index()] = true;

  std::vector<bool> independent(graph.nodes.size(), false);
  for (bool changed = true;
       changed;) {  // a write of something dependent taints its storage, also for earlier views
    changed = false;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const OperatorTraits* traits = find_operator(node.op);
      bool free = traits != nullptr && !(traits->random && node.op != "aten::dropout");
      if (!(traits && traits->metadata_only))
        for (const ValueId v : inputs_of(node))
          free = free && !dependent[v.index()] && !dependent[aliases.storage[v.index()].index()];
      independent[n] = free;
      if (free) continue;
      for (const ValueId v : node.outputs) {
        const std::size_t root = aliases.storage[v.index()].index();
        const bool writes =
            traits == nullptr || traits->memory == Memory::InPlace || root == v.index();
        if (!dependent[v.index()]) dependent[v.index()] = changed = true;
        if (writes && !dependent[root]) dependent[root] = changed = true;
      }
    }
  }
  return independent;
}

namespace {

class Grouper {
 public:
  Grouper(const Graph& graph, const std::vector<Profile>& profiles)
      : graph_(under_autocast(graph, profiles.front().training.precision)),
        profiles_(profiles),
        aliases_(aliasing(graph_)),
        independent_(input_independent(graph_, aliases_)) {
    for (const Profile& profile : profiles)
      PFEIFE_CHECK(profile.nodes.size() == graph.nodes.size() &&
                       profile.parameters.size() == graph.parameters.size(),
                   "profile of another graph");
  }

  Layers group() {
    layers_.name = graph_.name;
    layers_.digest = graph_.digest;
    layers_.microbatch_size = graph_.microbatch_size;
    assign_nodes();
    add_times();
    add_values();
    add_storages();
    add_parameters();
    forbid_cuts();
    for (const Profile& profile : profiles_) {
      layers_.notes.push_back(profile.device_kind + ": times " + to_string(profile.source) + ", " +
                              profile.origin);
      for (const std::string& warning : profile.warnings)
        layers_.notes.push_back("warning: " + warning);
    }
    return std::move(layers_);
  }

 private:
  LayerId layer(std::size_t node) const { return layer_of_[node]; }
  ValueId storage(ValueId v) const { return aliases_.storage[v.index()]; }

  /// Walks the forward pass and closes a layer after each node that makes the held bytes grow.
  void assign_nodes() {
    std::vector<std::size_t> last_use(graph_.values.size(), 0);
    std::vector<bool> kept(graph_.values.size(), false);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (const ValueId v : inputs_of(graph_.nodes[n])) last_use[storage(v).index()] = n;
    for (const ValueId v : graph_.outputs) kept[storage(v).index()] = true;
    for (const SavedStorage& saved : profiles_.front().storages) kept[saved.value.index()] = true;
    std::vector<std::vector<ValueId>> dies_after(graph_.nodes.size());

    std::int64_t held = 0;
    std::size_t first = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const std::int64_t before = held;
      held += profiles_.front().nodes[n].saved.value;
      for (const ValueId v : node.outputs) {
        if (storage(v) != v) continue;
        held += graph_.value(v).type.bytes().value;
        if (!kept[v.index()]) dies_after[std::max(n, last_use[v.index()])].push_back(v);
      }
      for (const ValueId v : dies_after[n]) held -= graph_.value(v).type.bytes().value;
      if (held > before) close(std::exchange(first, n + 1), n + 1);
    }
    if (first < graph_.nodes.size()) close(first, graph_.nodes.size());
    layers_.layers.back().no_cut_after = "only the model's result follows";
    layers_.layers.push_back(
        {.name = "output", .times = std::vector<LayerTimes>(profiles_.size())});
  }
  void close(std::size_t first, std::size_t end) {
    Layer layer;
    layer.name = graph_.nodes[end - 1].name;
    layer.times.resize(profiles_.size());
    layers_.layers.push_back(std::move(layer));
    for (std::size_t n = first; n < end; ++n) join_last(n);
  }
  void join_last(std::size_t n) {
    layers_.layers.back().nodes.emplace_back(static_cast<std::int64_t>(n));
    layers_.layers.back().module_path = graph_.nodes[n].module_path;
    layer_of_.emplace_back(static_cast<std::int64_t>(layers_.layers.size() - 1));
  }

  void add_times() {
    for (Layer& layer : layers_.layers)
      for (const NodeId id : layer.nodes) {
        const std::size_t n = id.index();
        for (std::size_t kind = 0; kind < profiles_.size(); ++kind) {
          const NodeProfile& cost = profiles_[kind].nodes[n];
          layer.times[kind].forward += cost.forward;
          layer.times[kind].backward_input += cost.backward_input;
          layer.times[kind].backward_weight += cost.backward_weight;
        }
        const NodeProfile& cost = profiles_.front().nodes[n];
        layer.saved += cost.saved;
        layer.weight_saved += cost.weight_saved;
        layer.temporary = std::max(layer.temporary, cost.temporary);
        for (const ValueId v : inputs_of(graph_.nodes[n]))
          if (graph_.value(v).role == ValueRole::Input)
            layer.model_input += graph_.value(v).type.bytes();
      }
  }

  /// The layers that read `v`, sorted, unique.
  std::vector<std::vector<LayerId>> readers() const {
    std::vector<std::vector<LayerId>> by_value(graph_.values.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const OperatorTraits* traits = find_operator(graph_.nodes[n].op);
      if (traits && traits->metadata_only) continue;  // reads the shape only
      for (const ValueId v : inputs_of(graph_.nodes[n])) {
        std::vector<LayerId>& list = by_value[v.index()];
        if (list.empty() || list.back() != layer(n)) list.push_back(layer(n));
      }
    }
    return by_value;
  }

  /// Two views of one storage that cross the same cut are two values, each of its own bytes: what
  /// is sent is the tensor.
  void add_values() {
    const std::vector<std::vector<LayerId>> by_value = readers();
    value_index_.assign(graph_.values.size(), npos);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      if (!value.producer || independent_[value.producer->index()]) continue;
      const LayerId from = layer(value.producer->index());
      LayerValue crossing{value.name, from, {}, value.type.bytes(), {}, {}};
      for (const LayerId to : by_value[v])
        if (to != from) crossing.consumers.push_back(to);
      if (crossing.consumers.empty()) continue;
      if (value.requires_grad) crossing.gradient_bytes = crossing.bytes;
      value_index_[v] = layers_.values.size();
      layers_.values.push_back(std::move(crossing));
    }
  }

  void add_storages() {
    const auto layers_of = [&](const std::vector<NodeId>& nodes) {
      std::vector<LayerId> list;
      for (const NodeId n : nodes)
        if (list.empty() || list.back() != layer(n.index())) list.push_back(layer(n.index()));
      return list;
    };
    for (const SavedStorage& saved : profiles_.front().storages) {
      LayerStorage storage{
          saved.bytes, layers_of(saved.savers), layers_of(saved.weight_savers), {}};
      if (value_index_[saved.value.index()] != npos)
        storage.value = value_index_[saved.value.index()];
      layers_.storages.push_back(std::move(storage));
    }
  }

  void add_parameters() {
    std::vector<std::vector<LayerId>> users(graph_.values.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      for (const ValueId v : inputs_of(graph_.nodes[n]))
        if (users[v.index()].empty() || users[v.index()].back() != layer(n))
          users[v.index()].push_back(layer(n));
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      const Parameter& parameter = graph_.parameters[p];
      LayerParameter out;
      out.name = parameter.names.front();
      out.bytes = parameter.type.bytes();
      out.gradient = parameter.trainable ? out.bytes : Bytes{0};
      out.state = profiles_.front().parameters[p].state;
      out.users = users[parameter.value.index()];
      if (out.users.empty())
        out.users = {LayerId{0}};  // unused, but held by whoever has the model's start
      for (const Profile& profile : profiles_)
        out.optimizer.push_back(profile.parameters[p].optimizer);
      layers_.parameters.push_back(std::move(out));
    }
  }

  /// Between the first use of a storage and its last write there is no cut; nor between any two
  /// uses of a buffer or input that is written, since each side would have its own.
  void forbid_cuts() {
    struct Extent {
      std::optional<LayerId> first;
      LayerId last_use, last_write;
      NodeId writer;
    };
    std::map<ValueId, Extent> extents;
    for (const Aliasing::Write& write : aliases_.writes) {
      if (independent_[write.node.index()]) continue;  // each stage makes and changes its own
      extents[write.storage].writer = write.node;
      extents[write.storage].last_write = layer(write.node.index());
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::vector<ValueId> touched = inputs_of(graph_.nodes[n]);
      touched.insert(touched.end(), graph_.nodes[n].outputs.begin(), graph_.nodes[n].outputs.end());
      for (const ValueId v : touched) {
        const auto at = extents.find(storage(v));
        if (at == extents.end()) continue;
        if (!at->second.first) at->second.first = layer(n);
        at->second.last_use = layer(n);
      }
    }
    for (const auto& [value, extent] : extents) {
      const Node& writer = graph_.node(extent.writer);
      const bool own_copy = graph_.value(value).role != ValueRole::Intermediate;
      const LayerId end = own_copy ? extent.last_use : extent.last_write;
      for (std::size_t l = extent.first->index(); l < end.index(); ++l)
        if (layers_.layers[l].no_cut_after.empty())
          layers_.layers[l].no_cut_after = "'" + writer.name + "' (" + writer.op + ") changes '" +
                                           graph_.value(value).name +
                                           "' in place, which both sides use";
    }
  }

  static constexpr std::size_t npos = ~std::size_t{0};
  Graph graph_;
  const std::vector<Profile>& profiles_;
  Aliasing aliases_;
  std::vector<bool> independent_;         // [node]
  std::vector<LayerId> layer_of_;         // [node]
  std::vector<std::size_t> value_index_;  // [value] index into layers_.values
  Layers layers_;
};

}  // namespace

Layers layers_from_graph(const Graph& graph, const std::vector<Profile>& profiles) {
  PFEIFE_CHECK(!profiles.empty() && !graph.nodes.empty());
  return Grouper(graph, profiles).group();
}

}  // namespace pfeife
