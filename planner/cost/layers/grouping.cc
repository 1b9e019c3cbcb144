#include "planner/cost/layers/grouping.h"

#include <algorithm>
#include <map>
#include <optional>

#include "planner/cost/layers/grouping_parts.h"
#include "planner/cost/operators/liveness.h"
#include "planner/cost/operators/saved.h"
#include "planner/cost/operators/table_effects.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/arguments.h"
#include "planner/ir/schedule/graph_split.h"

namespace pfeife {
namespace {

class Grouper {
 public:
  Grouper(const FactsByPrecision& of, const std::vector<Profile>& profiles)
      : graph_(of.graph),
        profiles_(profiles),
        facts_(of.at(profiles.front().training.precision)),
        plain_(of.at(Precision::Fp32)),
        local_(local_nodes(facts_)) {
    for (const Profile& profile : profiles)
      PFEIFE_CHECK(profile.nodes.size() == graph_.nodes.size() &&
                       profile.parameters.size() == graph_.parameters.size(),
                   "profile of another graph");
  }

  Layers group(Grouping grouping) {
    const std::vector<NodeBorder> borders = module_borders(facts_, local_);
    return group(ends_of_layers(grouping, borders), borders);
  }
  Layers group(const std::vector<bool>& ends) {
    return group(ends, module_borders(facts_, local_));
  }

 private:
  Layers group(const std::vector<bool>& ends, const std::vector<NodeBorder>& borders) {
    layers_.name = graph_.name;
    layers_.digest = graph_.digest;
    layers_.microbatch_size = graph_.microbatch_size;
    assign_nodes(ends, borders);
    add_costs();
    add_model_inputs();
    find_keepers();
    add_values();
    leave_out_waiting_gradients();
    add_storages();
    add_parameters();
    forbid_cuts();
    add_notes();
    return std::move(layers_);
  }

  LayerId layer(NodeId n) const { return LayerId{node_layers_.layer[n.index()]}; }
  Layer& at(NodeId n) { return layers_.layers[node_layers_.layer[n.index()]]; }
  bool reads_contents(NodeId n) const {
    return !facts_.traits[n.index()] || !facts_.traits[n.index()]->metadata_only;
  }

  void assign_nodes(const std::vector<bool>& ends, const std::vector<NodeBorder>& borders) {
    node_layers_ = layer_of_node(facts_, local_, ends);
    layers_.layers.resize(node_layers_.count);
    for (Layer& layer : layers_.layers) {
      layer.name = "output";
      layer.times.resize(profiles_.size());
    }
    for (const NodeId n : nodes_of(graph_)) {
      Layer& layer = at(n);
      layer.nodes.push_back(n);
      layer.name = graph_.node(n).name;
      layer.module_path = graph_.node(n).module_path;
    }
    for (const NodeId n : nodes_of(graph_))
      if (!local_[n.index()] && &at(n) != &layers_.layers.back()) {
        // What the last of the layer's nodes says stays.
        at(n).ends_module = borders[n.index()].ended;
        (&at(n) + 1)->begins_module = borders[n.index()].begun;
      }
  }

  /// [node] a layer ends with it.
  std::vector<bool> ends_of_layers(Grouping grouping,
                                   const std::vector<NodeBorder>& borders) const {
    if (grouping == Grouping::Growth)
      return grows_memory(plain_, saved_memory(plain_, DeviceType::Gpu), local_);
    std::vector<bool> ends;
    for (const NodeBorder& border : borders) ends.push_back(border.between_blocks());
    return ends;
  }

  void add_costs() {
    for (const NodeId n : nodes_of(graph_)) {
      Layer& layer = at(n);
      for (std::size_t kind = 0; kind < profiles_.size(); ++kind) {
        const NodeProfile& cost = profiles_[kind].nodes[n.index()];
        layer.times[kind].forward += cost.forward;
        layer.times[kind].backward_input += cost.backward_input;
        layer.times[kind].backward_weight += cost.backward_weight;
      }
      const NodeProfile& cost = profiles_.front().nodes[n.index()];
      layer.saved += cost.saved;
      layer.weight_saved += cost.weight_saved;
    }
    const auto temporary = layer_temporary(graph_, profiles_.front(), node_layers_);
    for (std::size_t l = 0; l < layers_.size(); ++l) layers_.layers[l].temporary = temporary[l];
  }

  /// Each input is charged to the first layer that reads it.
  void add_model_inputs() {
    std::map<ValueId, LayerId> first;
    for (const NodeId n : nodes_of(graph_))
      for (const ValueId v : facts_.inputs(n))
        if (graph_.value(v).role == ValueRole::Input) {
          const auto [entry, added] = first.try_emplace(v, layer(n));
          entry->second = std::min(entry->second, layer(n));
        }
    for (const auto& [input, where] : first)
      layers_.layers[where.index()].model_input += facts_.bytes(input);
  }

  /// [value] the layers that read it, sorted, unique.
  std::vector<std::vector<LayerId>> readers() const {
    std::vector<std::vector<LayerId>> by_value(graph_.values.size());
    for (const NodeId n : nodes_of(graph_))
      if (reads_contents(n))
        for (const ValueId v : facts_.inputs(n)) by_value[v.index()].push_back(layer(n));
    for (std::vector<LayerId>& list : by_value) sort_unique(list);
    return by_value;
  }
  static void sort_unique(std::vector<LayerId>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  void add_values() {
    const std::vector<std::vector<LayerId>> by_value = readers();
    value_of_storage_.assign(graph_.values.size(), std::nullopt);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      if (!value.producer || local_[value.producer->index()]) continue;
      const ValueId id{v};
      LayerValue crossing{value.name, layer(*value.producer), {}, facts_.bytes(id), {}, {}, {}};
      for (const LayerId to : by_value[v])
        if (to > crossing.producer) crossing.consumers.push_back(to);
      if (crossing.consumers.empty()) continue;
      crossing.has_gradient = value.requires_grad;
      if (crossing.has_gradient) {
        crossing.gradient_bytes = crossing.bytes;
        crossing.waiting_gradient = waiting_gradient(id, crossing);
        crossing.kept_for_weight = kept_for_weight(id, crossing);
        crossing.producer_keeps_gradient = producer_keeps_gradient(id, crossing);
      }
      // The largest of a storage's tensors that cross stands for it; of equal ones, that which is
      // read last (written in place, it is another value of the same size).
      std::optional<std::size_t>& known = value_of_storage_[facts_.storage(id).index()];
      const auto rank = [](const LayerValue& v) { return std::pair(v.bytes, v.consumers.back()); };
      if (!known || rank(layers_.values[*known]) < rank(crossing)) known = layers_.values.size();
      layers_.values.push_back(std::move(crossing));
    }
  }

  /// A concatenation hands each operand its part of the gradient, which keeps all of it. Figures
  /// that were not measured know nothing of that.
  Bytes waiting_gradient(ValueId v, const LayerValue& value) const {
    if (!measured()) return value.gradient_bytes;
    const auto reader = last_reader(v, value);
    return reader && graph_.node(*reader).op == "aten::cat"
               ? facts_.bytes(graph_.node(*reader).outputs.front())
               : value.gradient_bytes;
  }
  bool measured() const { return profiles_.front().source == FigureSource::Measured; }
  /// The one node that reads it in the last layer that does.
  std::optional<NodeId> last_reader(ValueId v, const LayerValue& value) const {
    std::optional<NodeId> reader;
    for (const NodeId n : layers_.layers[value.consumers.back().index()].nodes)
      if (const auto inputs = facts_.inputs(n); std::ranges::find(inputs, v) != inputs.end()) {
        if (reader) return std::nullopt;
        reader = n;
      }
    return reader;
  }
  /// [value] the nodes whose W needs the gradient that is this value's, and that of others where
  /// operators hand it on as it is. Figures that were not measured count each of these gradients.
  void find_keepers() {
    keepers_.resize(graph_.values.size());
    if (!measured()) return;
    gradient_tensor_ = gradient_tensors(facts_);
    for (const NodeId n : nodes_of(graph_))
      if (std::ranges::any_of(facts_.inputs(n),
                              [&](ValueId p) { return deferred_to_weight(facts_, n, p); }))
        keepers_[gradient_tensor_[graph_.node(n).outputs.front().index()].index()].push_back(n);
  }
  const std::vector<NodeId>& keepers(ValueId v) const {
    static const std::vector<NodeId> kNone;
    return measured() ? keepers_[gradient_tensor_[v.index()].index()] : kNone;
  }
  /// An addition hands its gradient to a skip and to the branch beside it, whose last product may
  /// need it in W.
  std::optional<LayerId> kept_for_weight(ValueId v, const LayerValue& value) const {
    const auto reader = last_reader(v, value);
    if (!reader) return std::nullopt;
    const OperatorTraits* row = facts_.traits[reader->index()];
    const ValueId sum = graph_.node(*reader).outputs.front();
    if (row == nullptr || row->gradient != Gradient::Passes || facts_.bytes(sum) != facts_.bytes(v))
      return std::nullopt;
    const std::vector<NodeId>& nodes = keepers(sum);
    return nodes.empty() || layer(nodes.back()) <= value.producer
               ? std::nullopt
               : std::optional(layer(nodes.back()));
  }
  bool producer_keeps_gradient(ValueId v, const LayerValue& value) const {
    return std::ranges::any_of(keepers(v), [&](NodeId n) { return layer(n) == value.producer; });
  }

  /// The profile is that of the whole graph; what passes over a layer depends on the stages.
  void leave_out_waiting_gradients() {
    for (const LayerValue& value : layers_.values)
      for (LayerId l{value.producer.value + 1}; l < value.consumers.back(); ++l.value) {
        PassBytes& more = layers_.layers[l.index()].temporary;
        more.backward = std::max(more.backward - value.waiting_at(l), Bytes{0});
        more.input = std::max(more.input - value.waiting_in_input(l), Bytes{0});
      }
  }

  std::vector<LayerId> layers_of(const std::vector<NodeId>& nodes) const {
    std::vector<LayerId> list;
    for (const NodeId n : nodes) list.push_back(layer(n));
    sort_unique(list);
    return list;
  }
  void add_storages() {
    for (const SavedStorage& saved : profiles_.front().storages)
      layers_.storages.push_back({saved.bytes, layers_of(saved.savers),
                                  layers_of(saved.weight_savers),
                                  value_of_storage_[saved.value.index()]});
  }

  void add_parameters() {
    std::vector<std::vector<LayerId>> users(graph_.values.size());
    std::vector<bool> waits(graph_.values.size(), !measured());
    for (const NodeId n : nodes_of(graph_))
      for (const ValueId v : facts_.inputs(n)) {
        users[v.index()].push_back(layer(n));
        // Products are added to the gradient as they are made, in B as in W.
        if (!deferred_to_weight(facts_, n, v)) waits[v.index()] = true;
      }
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      const Parameter& parameter = graph_.parameters[p];
      LayerParameter out;
      out.name = parameter.names.front();
      out.bytes = parameter.type.bytes();
      out.gradient = parameter.trainable ? out.bytes : Bytes{0};
      out.state = profiles_.front().parameters[p].state;
      out.gradients_wait = waits[parameter.value.index()];
      out.users = users[parameter.value.index()];
      if (out.users.empty()) out.users = {LayerId{0}};
      sort_unique(out.users);
      for (const Profile& profile : profiles_)
        out.optimizer.push_back(profile.parameters[p].optimizer);
      layers_.parameters.push_back(std::move(out));
    }
  }

  // ---- where no cut may be ----
  /// From the first layer that touches a written storage to the last that must be with it: as
  /// split_graph() takes storages, which stages are made by.
  struct Extent {
    ValueId written;
    std::optional<LayerId> first;
    LayerId last_use;  ///< of the buffer, parameter or input itself
    LayerId last_write;
    NodeId writer;
  };
  std::map<std::size_t, Extent> written_storages() const {
    const std::vector<NodeEffects> effects = table_effects(graph_);
    const std::vector<std::size_t> classes = storage_classes(graph_, effects);
    std::map<std::size_t, Extent> extents;
    for (const NodeId n : nodes_of(graph_)) {
      if (local_[n.index()]) continue;  // each stage makes and changes its own
      for (const ValueId written : effects[n.index()].writes) {
        Extent& extent = extents[classes[written.index()]];
        if (!extent.first) extent.written = written;
        extent.writer = n;
        extent.first = extent.last_write = std::max(extent.last_write, layer(n));
      }
    }
    const auto touch = [&](ValueId v, NodeId n) {
      const auto found = extents.find(classes[v.index()]);
      if (found == extents.end()) return;
      Extent& extent = found->second;
      extent.first = std::min(extent.first.value_or(layer(n)), layer(n));
      // What an operator has made of it, be it in place, is sent as any other value.
      if (graph_.value(v).role != ValueRole::Intermediate)
        extent.last_use = std::max(extent.last_use, layer(n));
    };
    for (const NodeId n : nodes_of(graph_)) {
      for (const ValueId v : facts_.inputs(n)) touch(v, n);
      for (const ValueId v : graph_.node(n).outputs) touch(v, n);
    }
    return extents;
  }
  void forbid_cuts() {
    struct Reach {
      std::size_t end = 0;
      ValueId written;
      NodeId writer;
    };
    std::vector<Reach> reach(layers_.size());  // [layer] the extent from here that ends last
    for (const auto& [storages, extent] : written_storages()) {
      const std::size_t end = std::max(extent.last_use, extent.last_write).index();
      Reach& known = reach[extent.first->index()];
      if (end > known.end) known = {end, extent.written, extent.writer};
    }
    Reach now;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      if (reach[l].end > now.end) now = reach[l];
      if (now.end > l)
        layers_.layers[l].no_cut_after =
            "'" + graph_.node(now.writer).name + "' (" + graph_.node(now.writer).op +
            ") changes '" + graph_.value(now.written).name + "' in place, which both sides use";
    }
    forbid_empty_end();
  }
  /// A last stage has to run something.
  void forbid_empty_end() {
    const auto runs = [&](const Layer& layer) {
      return std::ranges::any_of(layer.nodes, [&](NodeId n) { return !local_[n.index()]; });
    };
    if (layers_.size() > 1 && !runs(layers_.layers.back()))
      layers_.layers[layers_.size() - 2].no_cut_after = "only the model's result follows";
  }

  void add_notes() {
    for (const Profile& profile : profiles_) {
      layers_.notes.push_back(profile.device_kind + ": times " + to_string(profile.source) + ", " +
                              profile.origin);
      for (const std::string& warning : profile.warnings)
        layers_.notes.push_back("warning: " + warning);
      if (profile.storages != profiles_.front().storages)
        layers_.notes.push_back("warning: " + profile.device_kind +
                                " keeps other bytes for backward than " +
                                profiles_.front().device_kind + ", whose figures are used");
    }
  }

  const Graph& graph_;
  const std::vector<Profile>& profiles_;
  const GraphFacts &facts_, &plain_;          // as it runs; in fp32
  std::vector<bool> local_;                   // [node]
  std::vector<ValueId> gradient_tensor_;      // [value], where figures are measured
  std::vector<std::vector<NodeId>> keepers_;  // [gradient tensor]
  NodeLayers node_layers_;
  std::vector<std::optional<std::size_t>> value_of_storage_;  // [storage] into layers_.values
  Layers layers_;
};

}  // namespace

namespace {

Grouper grouper(const FactsByPrecision& graph, const std::vector<Profile>& profiles) {
  PFEIFE_CHECK(!profiles.empty(), "no profile");
  if (graph.graph.nodes.empty())
    throw ConfigError({graph.graph.name}, "the model computes nothing: its graph has no operators");
  return Grouper(graph, profiles);
}

}  // namespace

Layers layers_from_graph(const FactsByPrecision& graph, const std::vector<Profile>& profiles,
                         Grouping grouping) {
  return grouper(graph, profiles).group(grouping);
}

Layers layers_from_graph(const FactsByPrecision& graph, const std::vector<Profile>& profiles,
                         const std::vector<bool>& ends) {
  return grouper(graph, profiles).group(ends);
}

}  // namespace pfeife
