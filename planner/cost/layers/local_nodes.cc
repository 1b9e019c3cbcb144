#include "planner/cost/layers/local_nodes.h"

#include <algorithm>

namespace pfeife {
namespace {

/// Spreads "must be sent" over storages: from what is so by itself, through every node that reads
/// it, to all that the node allocates or writes.
class Spreader {
 public:
  explicit Spreader(const GraphFacts& facts)
      : facts_(facts),
        sent_(facts.graph.values.size(), false),
        written_(facts.graph.values.size(), false),
        readers_(facts.graph.values.size()) {
    for (const Aliasing::Write& write : facts.aliases.writes)
      written_[write.storage.index()] = true;
  }

  std::vector<bool> local() {
    for (const NodeId n : nodes_of(facts_.graph)) list_reads(n);
    for (std::size_t v = 0; v < facts_.graph.values.size(); ++v)
      if (by_itself(ValueId{v})) mark(v);
    for (const NodeId n : nodes_of(facts_.graph))
      if (!known(n)) mark_results(n);
    while (!open_.empty()) {
      const std::size_t storage = open_.back();
      open_.pop_back();
      for (const NodeId n : readers_[storage]) mark_results(n);
    }
    std::vector<bool> local;
    for (const NodeId n : nodes_of(facts_.graph)) local.push_back(is_local(n));
    return local;
  }

 private:
  bool known(NodeId n) const {
    const OperatorTraits* row = facts_.traits[n.index()];
    return row != nullptr && !draws_random_numbers(facts_.node(n), row);
  }
  bool reads_contents(NodeId n) const {
    return !facts_.traits[n.index()] || !facts_.traits[n.index()]->metadata_only;
  }
  bool by_itself(ValueId v) const {
    const ValueRole role = facts_.graph.value(v).role;
    if (role == ValueRole::Parameter || role == ValueRole::Input) return true;
    return role != ValueRole::Intermediate && written_[v.index()];
  }
  /// A view reads nothing, and its result is the storage itself.
  void list_reads(NodeId n) {
    if (!reads_contents(n) || facts_.is_view(n)) return;
    for (const ValueId v : facts_.inputs(n)) readers_[facts_.storage(v).index()].push_back(n);
  }
  void mark(std::size_t storage) {
    if (sent_[storage]) return;
    sent_[storage] = true;
    open_.push_back(storage);
  }
  void mark_results(NodeId n) {
    for (const ValueId v : facts_.node(n).outputs) mark(facts_.storage(v).index());
  }

  bool is_local(NodeId n) const {
    if (!known(n)) return false;
    if (facts_.is_view(n)) {
      const std::size_t storage = facts_.storage(facts_.node(n).outputs.front()).index();
      return !sent_[storage] ||
             (facts_.graph.values[storage].role == ValueRole::Input && !written_[storage]);
    }
    const auto stays = [&](ValueId v) { return !sent_[facts_.storage(v).index()]; };
    return std::ranges::all_of(facts_.node(n).outputs, stays) &&
           (!reads_contents(n) || std::ranges::all_of(facts_.inputs(n), stays));
  }

  const GraphFacts& facts_;
  std::vector<bool> sent_, written_;          // [storage]
  std::vector<std::vector<NodeId>> readers_;  // [storage]
  std::vector<std::size_t> open_;
};

}  // namespace

std::vector<bool> local_nodes(const GraphFacts& facts) { return Spreader(facts).local(); }

}  // namespace pfeife
