#include "planner/mesh/recomputed_modules.h"

#include <algorithm>

namespace pfeife {
namespace {

class ModuleRecomputer {
 public:
  ModuleRecomputer(Profile& profile, std::vector<LayerCollectives>& collectives,
                   const GraphFacts& facts, const ModuleNodes& module)
      : profile_(profile), collectives_(collectives), facts_(facts), module_(module) {}

  void rewrite() {
    repeat_forward();
    for (SavedStorage& storage : profile_.storages)
      if (is_made_inside(storage.value)) let_go(storage);
    for (NodeId n = module_.first; n <= module_.last; ++n.value) {
      NodeProfile& cost = profile_.nodes[n.index()];
      made_again_ += cost.saved, cost.saved = Bytes{0};
      readers_.insert(n);
    }
    keep_inputs();
    for (const NodeId n : readers_) {
      PassBytes& more = profile_.nodes[n.index()].temporary;
      more.backward += made_again_;
      more.input += made_again_ - for_weight_;
    }
  }

 private:
  bool is_inside(NodeId n) const { return module_.first <= n && n <= module_.last; }
  bool is_made_inside(ValueId v) const {
    const auto& producer = facts_.graph.value(v).producer;
    return producer && is_inside(*producer);
  }

  /// Before the backward of its last node.
  void repeat_forward() {
    Nanoseconds forward{0};
    for (NodeId n = module_.first; n <= module_.last; ++n.value) {
      forward += profile_.nodes[n.index()].forward;
      collectives_[module_.last.index()].backward += collectives_[n.index()].forward;
    }
    profile_.nodes[module_.last.index()].backward_input += forward;
  }

  /// What W needs waits as ever, as bytes of the node.
  void let_go(SavedStorage& storage) {
    const bool all = is_discarded(module_.module);
    const auto goes = [&](NodeId n) { return all || is_inside(n); };
    for (const NodeId saver : storage.savers)
      if (goes(saver)) readers_.insert(saver);
    if (std::erase_if(storage.savers, goes) == 0) return;
    made_again_ += storage.bytes;
    const std::vector<NodeId> waiting = storage.weight_savers;
    if (std::erase_if(storage.weight_savers, goes) == 0) return;
    profile_.nodes[std::ranges::find_if(waiting, goes)->index()].weight_saved += storage.bytes;
    for_weight_ += storage.bytes;
  }

  /// What the module reads of values that others make is kept.
  void keep_inputs() {
    for (NodeId n = module_.first; n <= module_.last; ++n.value)
      for (const ValueId read : facts_.inputs(n)) {
        const ValueId v = facts_.storage(read);
        if (facts_.graph.value(v).role != ValueRole::Intermediate || is_made_inside(v)) continue;
        const auto found = std::ranges::find(profile_.storages, v, &SavedStorage::value);
        SavedStorage& storage =
            found == profile_.storages.end()
                ? profile_.storages.emplace_back(SavedStorage{v, facts_.bytes(v), {}, {}})
                : *found;
        if (std::ranges::any_of(storage.savers, [&](NodeId s) { return is_inside(s); })) continue;
        storage.savers.push_back(module_.first);
        std::ranges::sort(storage.savers);
      }
  }

  Profile& profile_;
  std::vector<LayerCollectives>& collectives_;
  const GraphFacts& facts_;
  const ModuleNodes& module_;
  std::set<NodeId> readers_;  ///< whose backward needs what is made again
  Bytes made_again_, for_weight_;
};

}  // namespace

std::vector<ModuleNodes> chosen_modules(const RankGraph& rank, const MeshRun& run) {
  std::vector<ModuleNodes> chosen;
  for (const ModuleNodes& nodes : rank.modules) {
    if (std::ranges::find(run.modules, nodes.module) == run.modules.end()) continue;
    std::erase_if(chosen, [&](const ModuleNodes& inner) { return nodes.first <= inner.first; });
    chosen.push_back(nodes);
  }
  return chosen;
}

std::set<ValueId> discarded_values(const Graph& graph, std::span<const ModuleNodes> modules) {
  std::set<ValueId> values;
  for (const ModuleNodes& nodes : modules)
    if (is_discarded(nodes.module))
      for (NodeId n = nodes.first; n <= nodes.last; ++n.value)
        values.insert(graph.node(n).outputs.begin(), graph.node(n).outputs.end());
  return values;
}

void recompute_modules(Profile& profile, std::vector<LayerCollectives>& collectives,
                       const GraphFacts& facts, std::span<const ModuleNodes> modules) {
  for (const bool discarded : {false, true})  // what others keep of these goes with them
    for (const ModuleNodes& nodes : modules)
      if (is_discarded(nodes.module) == discarded)
        ModuleRecomputer(profile, collectives, facts, nodes).rewrite();
  std::erase_if(profile.storages,
                [](const SavedStorage& storage) { return storage.savers.empty(); });
}

}  // namespace pfeife
