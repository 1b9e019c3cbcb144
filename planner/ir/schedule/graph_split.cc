#include "planner/ir/schedule/graph_split.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Values that may share a storage, as classes.
class Storages {
 public:
  Storages(const Graph& graph, const std::vector<NodeEffects>& effects)
      : parent_(graph.values.size()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    for (const NodeEffects& node : effects)
      for (const auto& [in, out] : node.aliases) parent_[root_of(in)] = root_of(out);
  }
  std::size_t root_of(ValueId value) {
    std::size_t at = value.index();
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }

 private:
  std::vector<std::size_t> parent_;
};

class Splitter {
 public:
  Splitter(const Graph& graph, const std::vector<NodeEffects>& effects)
      : graph_(graph), effects_(effects), storages_(graph, effects) {
    for (std::size_t n = 0; n < effects.size(); ++n)
      for (const ValueId v : effects[n].writes) writers_[storages_.root_of(v)].push_back(n);
    find_free_nodes();
    find_views_of_inputs();
    find_buffers_in_sight();
  }

  const std::vector<bool>& free_nodes() const { return free_; }

  GraphSplit loss_weight() {
    const ValueId weight = *graph_.loss_weight;
    std::vector<std::size_t> open;
    std::set<NodeId> nodes;
    std::set<ValueId> inputs, buffers;
    add_makers(weight, graph_.nodes.size(), open);
    while (!open.empty()) {
      const std::size_t n = open.back();
      open.pop_back();
      if (!nodes.insert(NodeId{n}).second) continue;
      if (effects_[n].random) refuse_weight("draws random numbers", graph_.nodes[n].name);
      if (effects_[n].metadata_only) continue;
      for (const ValueId in : inputs_of(graph_.nodes[n])) {
        const Value& value = graph_.value(in);
        if (value.role == ValueRole::Parameter) refuse_weight("reads", value.source_name);
        if (value.role == ValueRole::Input) inputs.insert(in);
        if (value.role == ValueRole::Buffer || value.role == ValueRole::Constant) {
          if (!writers_of(in).empty()) refuse_weight("reads what forward writes:", value.name);
          buffers.insert(in);
        }
        if (value.producer) add_makers(in, n, open);
      }
    }
    StageSlice slice;
    slice.nodes.assign(nodes.begin(), nodes.end());
    slice.inputs.assign(inputs.begin(), inputs.end());
    slice.buffers.assign(buffers.begin(), buffers.end());
    slice.outputs = {weight};
    return {{std::move(slice)}, {}};
  }

  GraphSplit split(std::span<const NodeId> cuts) {
    place(cuts);
    GraphSplit result;
    result.stages.resize(cuts.size() + 1);
    for (std::size_t s = 0; s <= cuts.size(); ++s) fill(result, s);
    std::ranges::sort(result.crossings, {}, [](const Crossing& c) {
      return std::tuple{c.from, c.to, c.value};
    });
    check_writes(result);
    return result;
  }

 private:
  void place(std::span<const NodeId> cuts) {
    stage_of_.assign(graph_.nodes.size(), 0);
    std::size_t stage = 0;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      stage_of_[n] = stage;
      if (stage < cuts.size() && cuts[stage].index() == n) ++stage;
    }
    if (stage != cuts.size() || (!cuts.empty() && cuts.back().index() + 1 >= graph_.nodes.size()))
      throw ConfigError({graph_.name},
                        stream_all("the cuts must increase and lie before the last of ",
                                   graph_.nodes.size(), " nodes"));
  }

  /// Free: depends on no input, parameter, random number or buffer that is written. Found by
  /// spreading the opposite over storages: through every node that reads what is bound, to all that
  /// it returns or writes.
  void find_free_nodes() {
    std::vector<bool> bound(graph_.values.size());  // [storage class]
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const ValueRole role = graph_.values[v].role;
      const std::size_t storage = storages_.root_of(ValueId{v});
      if (role == ValueRole::Input || role == ValueRole::Parameter ||
          (role != ValueRole::Intermediate && writers_.contains(storage)))
        bound[storage] = true;
    }
    const auto is_bound = [&](ValueId v) { return bool{bound[storages_.root_of(v)]}; };
    const auto reads_bound = [&](std::size_t n) {
      if (effects_[n].random) return true;
      return !effects_[n].metadata_only &&
             std::ranges::any_of(inputs_of(graph_.nodes[n]), is_bound);
    };
    for (bool changed = true; changed;) {
      changed = false;
      const auto bind = [&](ValueId v) {
        changed = changed || !is_bound(v);
        bound[storages_.root_of(v)] = true;
      };
      for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
        if (reads_bound(n)) {
          std::ranges::for_each(graph_.nodes[n].outputs, bind);
          std::ranges::for_each(effects_[n].writes, bind);
        }
    }
    free_.assign(graph_.nodes.size(), false);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      free_[n] = !reads_bound(n) && std::ranges::none_of(graph_.nodes[n].outputs, is_bound) &&
                 std::ranges::none_of(effects_[n].writes, is_bound);
  }
  /// Inputs are at hand on every rank, and so are views of them that read nothing else.
  void find_views_of_inputs() {
    std::vector<bool> input(graph_.values.size());  // [value] an input of the model, or its view
    for (std::size_t v = 0; v < graph_.values.size(); ++v)
      input[v] = graph_.values[v].role == ValueRole::Input && writers_of(ValueId{v}).empty();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const auto& aliases = effects_[n].aliases;
      const auto views_an_input = [&](ValueId out) {
        return std::ranges::any_of(aliases, [&](const auto& alias) {
          const auto& [viewed, view] = alias;
          return view == out && input[viewed.index()] &&
                 graph_.value(viewed).type.dtype == graph_.value(view).type.dtype;
        });
      };
      const auto at_hand = [&](ValueId in) { return input[in.index()] || is_free(in); };
      if (effects_[n].random || node.outputs.empty() ||
          !std::ranges::all_of(node.outputs, views_an_input) ||
          !std::ranges::all_of(inputs_of(node), at_hand))
        continue;
      free_[n] = true;
      for (const ValueId out : node.outputs) input[out.index()] = true;
    }
  }
  /// A buffer that one node alone updates is seen by nobody, and a batch norm's by no gradient.
  void find_buffers_in_sight() {
    std::map<std::size_t, std::size_t> readers;  // storage class -> nodes
    for (const Node& node : graph_.nodes) {
      std::set<std::size_t> storages;
      for (const ValueId v : inputs_of(node)) storages.insert(storages_.root_of(v));
      for (const std::size_t storage : storages) ++readers[storage];
    }
    for (const auto& [storage, nodes] : writers_) {
      const bool by_norm = std::ranges::any_of(nodes, [&](std::size_t n) {
        return graph_.nodes[n].op.find("batch_norm") != std::string::npos;
      });
      if (!by_norm && readers[storage] > 1) in_sight_.insert(storage);
    }
    for (const ValueId out : graph_.outputs) in_sight_.insert(storages_.root_of(out));
  }
  bool is_free(ValueId v) const {
    const Value& value = graph_.value(v);
    return value.producer && free_[value.producer->index()];
  }
  /// The nodes that make what node `n` finds in the value `v`: those that have written into it
  /// before among them.
  void add_makers(ValueId v, std::size_t n, std::vector<std::size_t>& open) {
    open.push_back(graph_.value(v).producer->index());
    for (const std::size_t writer : writers_of(v))
      if (writer < n) open.push_back(writer);
  }

  void fill(GraphSplit& result, std::size_t s) {
    StageSlice& slice = result.stages[s];
    const StageId stage{s};
    std::set<NodeId> nodes;
    std::set<ValueId> inputs, buffers, received;
    std::set<ParameterId> parameters;
    std::vector<std::size_t> open;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (stage_of_[n] == s && !free_[n]) open.push_back(n);
    for (const ValueId out : graph_.outputs)  // outputs that nothing leads to belong to the last
      if (is_free(out) && s + 1 == result.stages.size()) add_makers(out, graph_.nodes.size(), open);
    while (!open.empty()) {
      const std::size_t n = open.back();
      open.pop_back();
      if (!nodes.insert(NodeId{n}).second) continue;
      if (free_[n] && effects_[n].metadata_only) continue;  // its argument is made up from its type
      for (const ValueId in : inputs_of(graph_.nodes[n])) {
        const Value& value = graph_.value(in);
        if (value.role == ValueRole::Input) inputs.insert(in);
        if (value.role == ValueRole::Parameter) parameters.insert(*value.parameter);
        if (value.role == ValueRole::Buffer || value.role == ValueRole::Constant)
          buffers.insert(in);
        if (!value.producer) continue;
        if (is_free(in))
          add_makers(in, n, open);
        else if (stage_of_[value.producer->index()] != s)
          received.insert(in);
      }
    }
    slice.nodes.assign(nodes.begin(), nodes.end());
    slice.inputs.assign(inputs.begin(), inputs.end());
    slice.buffers.assign(buffers.begin(), buffers.end());
    slice.parameters.assign(parameters.begin(), parameters.end());
    for (const ValueId b : buffers)
      if (writers_.contains(storages_.root_of(b))) {
        slice.written_buffers.push_back(b);
        if (in_sight_.contains(storages_.root_of(b))) slice.microbatch_buffers.push_back(b);
      }
    for (const ValueId out : graph_.outputs) {
      const auto& producer = graph_.value(out).producer;
      if (producer && nodes.contains(*producer) && (!is_free(out) || s + 1 == result.stages.size()))
        slice.outputs.push_back(out);
    }
    for (const ValueId v : received) {
      const Value& value = graph_.value(v);
      const std::size_t from = stage_of_[value.producer->index()];
      result.crossings.push_back(
          {v, StageId{from}, stage, value.requires_grad && is_floating(value.type.dtype)});
    }
  }

  void check_writes(const GraphSplit& result) {
    for (const Crossing& c : result.crossings)
      for (const std::size_t writer : writers_of(c.value))
        if (stage_of_[writer] > c.from.index())
          refuse(graph_.node(*graph_.value(c.value).producer).name, writer);
    for (const StageSlice& slice : result.stages)
      for (const ValueId b : slice.written_buffers) check_buffer(result, slice, b);
  }
  void check_buffer(const GraphSplit& result, const StageSlice& slice, ValueId b) {
    for (const StageSlice& other : result.stages)
      if (&other != &slice && std::ranges::binary_search(other.buffers, b))
        refuse(graph_.value(b).source_name, writers_of(b).front());
  }
  const std::vector<std::size_t>& writers_of(ValueId v) {
    static const std::vector<std::size_t> kNone;
    const auto found = writers_.find(storages_.root_of(v));
    return found == writers_.end() ? kNone : found->second;
  }
  [[noreturn]] void refuse(const std::string& value, std::size_t writer) const {
    throw ConfigError({graph_.name}, "a cut lies between '" + value + "' and '" +
                                         graph_.nodes[writer].name + "' (" +
                                         graph_.nodes[writer].op +
                                         "), which writes into it in place; move the cut so that "
                                         "both are in one stage");
  }

  [[noreturn]] void refuse_weight(const char* what, const std::string& which) const {
    throw ConfigError({graph_.name}, "the loss's weight '" +
                                         graph_.value(*graph_.loss_weight).name + "' " + what +
                                         " '" + which +
                                         "'; it must be computed from the inputs alone, such as "
                                         "(labels != -100).sum()");
  }

  const Graph& graph_;
  const std::vector<NodeEffects>& effects_;
  Storages storages_;
  std::map<std::size_t, std::vector<std::size_t>> writers_;  // storage class -> nodes
  std::set<std::size_t> in_sight_;                           // storage classes
  std::vector<bool> free_;                                   // [node]
  std::vector<std::size_t> stage_of_;                        // [node]
};

}  // namespace

std::vector<Crossing> GraphSplit::between(StageId from, StageId to) const {
  std::vector<Crossing> found;
  for (const Crossing& c : crossings)
    if (c.from == from && c.to == to) found.push_back(c);
  return found;
}

std::vector<std::size_t> storage_classes(const Graph& graph,
                                         const std::vector<NodeEffects>& effects) {
  Storages storages(graph, effects);
  std::vector<std::size_t> classes;
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    classes.push_back(storages.root_of(ValueId{v}));
  return classes;
}

GraphSplit split_graph(const Graph& graph, const std::vector<NodeEffects>& effects,
                       std::span<const NodeId> cuts) {
  return Splitter(graph, effects).split(cuts);
}

GraphSplit whole_graph(const Graph& graph, const std::vector<NodeEffects>& effects) {
  return Splitter(graph, effects).split({});
}

std::vector<bool> free_nodes(const Graph& graph, const std::vector<NodeEffects>& effects) {
  return Splitter(graph, effects).free_nodes();
}

GraphSplit loss_weight_graph(const Graph& graph, const std::vector<NodeEffects>& effects) {
  return Splitter(graph, effects).loss_weight();
}

std::vector<NodeId> legal_cuts(const Graph& graph, const std::vector<NodeEffects>& effects) {
  Splitter splitter(graph, effects);
  std::vector<NodeId> legal;
  for (std::size_t n = 0; n + 1 < graph.nodes.size(); ++n) try {
      const NodeId cut{n};
      splitter.split({&cut, 1});
      legal.push_back(cut);
    } catch (const ConfigError&) {  // the answer to the question asked
    }
  return legal;
}

StageGraph stage_graph(const Graph& graph, const GraphSplit& split, const Placement& placement) {
  StageGraph result;
  result.stages = split.stages.size();
  for (const Crossing& c : split.crossings) {
    if (result.edges.empty() || result.edges.back().from != c.from ||
        result.edges.back().to != c.to)
      result.edges.push_back({c.from, c.to, false});
    result.edges.back().gradient = result.edges.back().gradient || c.gradient;
  }
  std::set<std::vector<StageId>> tied;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!graph.parameters[p].trainable) continue;
    std::vector<StageId> users;
    for (std::size_t s = 0; s < split.stages.size(); ++s)
      if (std::ranges::binary_search(split.stages[s].parameters, ParameterId{p}))
        users.emplace_back(static_cast<std::int64_t>(s));
    const auto elsewhere = [&](StageId s) { return placement.rank(s) != placement.rank(users[0]); };
    if (std::ranges::any_of(users, elsewhere)) tied.insert(users);
  }
  result.tied.assign(tied.begin(), tied.end());
  return result;
}

StageCosts unit_costs(const Graph& graph, const GraphSplit& split, const Placement& placement) {
  constexpr Nanoseconds kUnit{1000};
  const StageGraph stages = stage_graph(graph, split, placement);
  StageCosts costs;
  costs.stages.assign(
      stages.stages,
      {.forward = kUnit, .backward_input = kUnit, .backward_weight = kUnit, .optimizer = kUnit});
  for (const StageGraph::Edge& edge : stages.edges) {
    StagePair pair{edge.from, edge.to, Bytes{0}, Bytes{0}, kUnit / 100, kUnit / 100, edge.gradient};
    for (const Crossing& c : split.between(edge.from, edge.to)) {
      pair.bytes += graph.value(c.value).type.bytes();
      if (c.gradient) pair.gradient_bytes += graph.value(c.value).type.bytes();
    }
    costs.pairs.push_back(pair);
  }
  for (const auto& group : stages.tied) costs.reductions.push_back({group, Bytes{1}, kUnit / 100});
  return costs;
}

}  // namespace pfeife
