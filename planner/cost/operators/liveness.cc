#include "planner/cost/operators/liveness.h"

#include <algorithm>

namespace pfeife {
namespace {

/// Sums of what is alive at each node, from intervals.
class Timeline {
 public:
  explicit Timeline(std::size_t nodes) : change_(nodes + 1, 0) {}
  /// `bytes` are alive at nodes first..last.
  void add(std::size_t first, std::size_t last, Bytes bytes) {
    change_[first] += bytes.value;
    change_[last + 1] -= bytes.value;
  }
  /// [node]
  std::vector<std::int64_t> levels() const {
    std::vector<std::int64_t> levels(change_.size() - 1);
    std::int64_t now = 0;
    for (std::size_t n = 0; n < levels.size(); ++n) levels[n] = now += change_[n];
    return levels;
  }

 private:
  std::vector<std::int64_t> change_;
};

/// [value] for storages: the last node that touches them; 0 if none does.
std::vector<std::size_t> last_uses(const GraphFacts& facts) {
  std::vector<std::size_t> last(facts.graph.values.size(), 0);
  for (const NodeId n : nodes_of(facts.graph)) {
    for (const ValueId v : facts.inputs(n)) last[facts.storage(v).index()] = n.index();
    for (const ValueId v : facts.node(n).outputs) last[facts.storage(v).index()] = n.index();
  }
  return last;
}

std::vector<bool> kept_storages(const GraphFacts& facts, const SavedMemory& saved) {
  std::vector<bool> kept(facts.graph.values.size(), false);
  for (const SavedStorage& storage : saved.storages) kept[storage.value.index()] = true;
  return kept;
}

/// Number of times each value is handed a gradient.
std::vector<int> gradient_readers(const GraphFacts& facts) {
  std::vector<int> readers(facts.graph.values.size(), 0);
  for (const NodeId n : nodes_of(facts.graph)) {
    if (!facts.gives_gradient(n)) continue;
    for (const ValueId v : facts.inputs(n))
      if (facts.needs_gradient(v)) ++readers[v.index()];
  }
  return readers;
}

}  // namespace

std::vector<ValueId> gradient_tensors(const GraphFacts& facts) {
  std::vector<ValueId> tensor;
  for (std::size_t v = 0; v < facts.graph.values.size(); ++v)
    tensor.emplace_back(static_cast<std::int64_t>(v));
  const std::vector<int> readers = gradient_readers(facts);
  for (std::size_t n = facts.graph.nodes.size(); n-- > 0;) {
    const NodeId id{n};
    const OperatorTraits* row = facts.traits[n];
    if (row == nullptr || facts.node(id).outputs.size() != 1 || !facts.gives_gradient(id)) continue;
    if (row->gradient != Gradient::Passes && !facts.is_view(id)) continue;
    if (row->gradient == Gradient::Fills) continue;
    const ValueId out = facts.node(id).outputs.front();
    for (const ValueId v : facts.inputs(id))
      if (facts.needs_gradient(v) && readers[v.index()] == 1 && facts.bytes(v) == facts.bytes(out))
        tensor[v.index()] = tensor[out.index()];
  }
  return tensor;
}

namespace {

void add_gradients(const GraphFacts& facts, Timeline& timeline) {
  const std::vector<ValueId> tensor = gradient_tensors(facts);
  std::vector<std::size_t> first(tensor.size(), ~std::size_t{0}), last(tensor.size(), 0);
  const auto touch = [&](ValueId v, std::size_t n) {
    const Value& value = facts.graph.value(v);
    if (!value.requires_grad || value.role == ValueRole::Parameter) return;
    std::size_t& begin = first[tensor[v.index()].index()];
    std::size_t& end = last[tensor[v.index()].index()];
    begin = std::min(begin, n);
    end = std::max(end, n);
  };
  for (const NodeId n : nodes_of(facts.graph)) {
    if (!facts.gives_gradient(n)) continue;
    for (const ValueId v : facts.inputs(n)) touch(v, n.index());
    for (const ValueId v : facts.node(n).outputs) touch(v, n.index());
  }
  for (std::size_t v = 0; v < tensor.size(); ++v)
    if (first[v] <= last[v]) timeline.add(first[v], last[v], facts.bytes(ValueId{v}));
}

/// Adds the gradients of parameters that are left to W, or of the others.
void add_parameter_gradients(const GraphFacts& facts, bool deferred, Timeline& timeline) {
  for (const NodeId n : nodes_of(facts.graph)) {
    if (!facts.gives_gradient(n)) continue;
    for (const ValueId v : facts.distinct_inputs(n)) {
      if (!facts.is_parameter(v) || !facts.needs_gradient(v)) continue;
      if (deferred_to_weight(facts, n, v) != deferred) continue;
      const std::optional<DType> cast = facts.cast_type(n, v);
      const Bytes narrow = cast ? facts.type(v).elements() * element_size(*cast) : Bytes{0};
      timeline.add(n.index(), n.index(), facts.bytes(v) + narrow);
    }
  }
}

}  // namespace

std::vector<PassBytes> temporary_bytes(const GraphFacts& facts, const SavedMemory& saved) {
  const std::size_t nodes = facts.graph.nodes.size();
  const std::vector<std::size_t> last = last_uses(facts);
  const std::vector<bool> kept = kept_storages(facts, saved);
  Timeline forward(nodes), input(nodes), weight(nodes);
  for (const NodeId n : nodes_of(facts.graph))
    for (const ValueId v : facts.node(n).outputs)
      if (facts.storage(v) == v && !kept[v.index()])
        forward.add(n.index(), last[v.index()], facts.bytes(v));
  add_gradients(facts, input);
  add_parameter_gradients(facts, false, input);
  add_parameter_gradients(facts, true, weight);
  const std::vector<std::int64_t> in_f = forward.levels(), in_i = input.levels(),
                                  in_w = weight.levels();
  std::vector<PassBytes> temporary(nodes);
  for (std::size_t n = 0; n < nodes; ++n)
    temporary[n] = {Bytes{in_f[n]}, Bytes{in_i[n] + in_w[n]},
                    std::max(Bytes{in_i[n]} - saved.node_weight_bytes[n], Bytes{0}),
                    Bytes{in_w[n]}};
  return temporary;
}

std::vector<bool> grows_memory(const GraphFacts& facts, const SavedMemory& saved,
                               const std::vector<bool>& ignored) {
  const std::vector<std::size_t> last = last_uses(facts);
  std::vector<bool> stays = kept_storages(facts, saved);
  for (const ValueId v : facts.graph.outputs) stays[facts.storage(v).index()] = true;
  std::vector<std::int64_t> growth(facts.graph.nodes.size(), 0);
  for (const NodeId n : nodes_of(facts.graph)) {
    if (ignored[n.index()]) continue;
    growth[n.index()] += saved.node_bytes[n.index()].value;
    for (const ValueId v : facts.node(n).outputs) {
      if (facts.storage(v) != v) continue;
      growth[n.index()] += facts.bytes(v).value;
      if (!stays[v.index()]) growth[last[v.index()]] -= facts.bytes(v).value;
    }
  }
  std::vector<bool> grows(growth.size());
  for (std::size_t n = 0; n < growth.size(); ++n) grows[n] = growth[n] > 0;
  return grows;
}

}  // namespace pfeife
