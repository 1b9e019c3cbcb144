#include <algorithm>
#include <set>

#include "runtime/device/counting_allocator.h"
#include "runtime/model/split_backward.h"
#include "runtime/model/stage_program.h"
#include "runtime/profile/node_passes.h"

namespace pfeife {
namespace {

const void* address(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().data() : nullptr;
}

constexpr MicrobatchId kMicrobatch{0};

/// Follows one stage: which node runs, and which value allocated a storage.
class Watcher final : public StageObserver {
 public:
  Watcher(const Graph& graph, const RankTensors& tensors, const StepInputs& inputs)
      : log(graph.nodes.size()) {
    for (const auto& [p, tensor] : tensors.parameters) fixed_.insert(address(tensor));
    for (const auto& [b, tensor] : tensors.buffers) fixed_.insert(address(tensor));
    for (const auto& [v, tensor] : inputs.microbatches.front()) inputs_[address(tensor)] = v;
  }

  /// Logs what `pass` allocates; the pass is the range that is returned.
  std::pair<std::size_t, std::size_t> run(const std::function<void()>& pass) {
    const std::size_t begin = log.here();
    listen_to_allocations(&log);
    pass();
    listen_to_allocations(nullptr);
    return {begin, log.here()};
  }
  std::pair<std::size_t, std::size_t> run_backward(const std::function<void()>& pass) {
    const BackwardWatch watch([this](std::int64_t number) {
      if (const auto found = functions_.find(number)) enter(*found);
    });
    return run(pass);
  }

  /// Kept with the parameters, whoever keeps it.
  bool is_fixed(const void* data) const { return data == nullptr || fixed_.contains(data); }
  /// The value that allocated the storage; empty if a node made it for itself.
  std::optional<ValueId> value_at(const void* data) const {
    if (const auto input = inputs_.find(data); input != inputs_.end()) return input->second;
    const auto allocation = log.at(data);
    if (!allocation) return {};
    const auto found = value_of_.find(*allocation);
    return found == value_of_.end() ? std::nullopt : std::optional(found->second);
  }
  NodeId node() const { return node_; }

  void before_node(NodeId node) override {
    enter(node);
    functions_.before(node);
  }
  void computed(NodeId, const std::vector<ValueId>& outputs,
                const std::vector<at::Tensor>& values) override {
    for (const ValueId v : outputs)
      if (values[v.index()].defined())
        if (const auto allocation = log.at(address(values[v.index()])))
          value_of_.try_emplace(*allocation, v);
  }
  void after_node(NodeId) override { functions_.after(); }
  void before_weight(NodeId node) override { enter(node); }
  void after_weight(NodeId) override {}

  AllocationLog log;

 private:
  void enter(NodeId node) {
    node_ = node;
    log.enter(node);
  }

  std::set<const void*> fixed_;
  std::map<const void*, ValueId> inputs_;
  std::map<std::size_t, ValueId> value_of_;  // [allocation]
  BackwardNodes functions_;
  NodeId node_;
};

void add(std::vector<NodeId>& nodes, NodeId node) {
  const auto at = std::ranges::lower_bound(nodes, node);
  if (at == nodes.end() || *at != node) nodes.insert(at, node);
}

class MemoryMeter {
 public:
  MemoryMeter(const Graph& graph, const RankTensors& tensors, const StepInputs& inputs)
      : graph_(graph), tensors_(tensors), inputs_(inputs), index_(graph.values.size(), kNone) {
    for (auto* list : {&memory_.saved, &memory_.weight_saved}) list->resize(graph.nodes.size());
    memory_.temporary.resize(graph.nodes.size());
  }

  /// What autograd keeps. Nothing of the way back counts: it meets copies of the parameters.
  void note_saved(GraphStage& stage) {
    Watcher watcher(graph_, tensors_, inputs_);
    stage.observe(&watcher);
    std::set<const void*> counted;  // storages that nodes keep besides values
    watcher.run([&] {
      const SavedTensorNotes notes([&](const at::Tensor& tensor) {
        const void* data = address(tensor);
        if (watcher.is_fixed(data)) return;
        saved_.push_back(
            {data, Bytes{static_cast<std::int64_t>(tensor.storage().nbytes())}, watcher.node()});
      });
      stage.forward(kMicrobatch, {});
    });
    // Only now it is known whether a node's result has become a value.
    for (const auto& [data, bytes, node] : saved_) {
      if (const auto value = watcher.value_at(data))
        add(entry(*value, bytes).savers, node);
      else if (counted.insert(data).second)
        memory_.saved[node.index()] += bytes;
    }
    stage.backward(kMicrobatch, {});
    stage.observe(nullptr);
  }

  void run_joint(GraphStage& stage) {
    Watcher watcher(graph_, tensors_, inputs_);
    stage.observe(&watcher);
    const auto forward = watcher.run([&] { stage.forward(kMicrobatch, {}); });
    memory_.kept_after_forward = watcher.log.kept(forward.first, forward.second);
    const auto backward = watcher.run_backward([&] { stage.backward(kMicrobatch, {}); });
    stage.observe(nullptr);
    add_temporary(watcher.log.above_kept(forward.first, forward.second), &PassBytes::forward);
    add_temporary(watcher.log.temporary(backward.first, backward.second), &PassBytes::backward);
    leave_out_waiting_gradients();
  }

  void run_split(GraphStage& stage) {
    Watcher watcher(graph_, tensors_, inputs_);
    stage.observe(&watcher);
    const auto forward = watcher.run([&] { stage.forward(kMicrobatch, {}); });
    const auto input = watcher.run_backward([&] { stage.backward_input(kMicrobatch, {}); });
    std::set<const void*> counted;
    for (const PendingWeight& weight : stage.pending(kMicrobatch).pending)
      for (const at::Tensor& tensor : weight.kept)
        keep_for_weight(watcher, weight.node, tensor, counted);
    memory_.kept_after_input = watcher.log.kept(forward.first, input.second);
    const auto weight = watcher.run([&] { stage.backward_weight(kMicrobatch); });
    stage.observe(nullptr);
    add_temporary(watcher.log.above_kept(forward.first, forward.second), &PassBytes::forward);
    add_input_temporary(watcher.log, input);
    add_temporary(watcher.log.temporary(weight.first, weight.second), &PassBytes::weight);
  }

  NodeMemory result() && { return std::move(memory_); }

 private:
  struct Saved {
    const void* data;
    Bytes bytes;
    NodeId node;
  };

  SavedStorage& entry(ValueId value, Bytes bytes) {
    std::size_t& at = index_[value.index()];
    if (at == kNone) {
      at = memory_.storages.size();
      memory_.storages.push_back({value, bytes, {}, {}});
    }
    return memory_.storages[at];
  }

  void keep_for_weight(const Watcher& watcher, NodeId node, const at::Tensor& tensor,
                       std::set<const void*>& counted) {
    const void* data = address(tensor);
    if (watcher.is_fixed(data)) return;
    if (const auto value = watcher.value_at(data);
        value && index_[value->index()] != kNone &&
        std::ranges::binary_search(memory_.storages[index_[value->index()]].savers, node))
      return add(memory_.storages[index_[value->index()]].weight_savers, node);
    if (counted.insert(data).second)
      memory_.weight_saved[node.index()] +=
          Bytes{static_cast<std::int64_t>(tensor.storage().nbytes())};
  }

  void add_temporary(const std::vector<Bytes>& most, Bytes PassBytes::*pass) {
    for (std::size_t n = 0; n < most.size(); ++n)
      memory_.temporary[n].*pass = std::max(memory_.temporary[n].*pass, most[n]);
  }

  /// Autograd adds up the gradients of a parameter that several nodes use before it hands them on:
  /// from the last user to the first. A stage that has one user alone has none of that. A product
  /// that could be deferred does not wait: it is added as it is made.
  void leave_out_waiting_gradients() {
    std::vector<std::vector<NodeId>> users(graph_.values.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (deferred_kind(graph_, graph_.nodes[n])) continue;
      for (const Argument& argument : graph_.nodes[n].arguments)
        if (const auto* value = std::get_if<ValueId>(&argument.value))
          users[value->index()].emplace_back(static_cast<std::int64_t>(n));
    }
    for (const Parameter& parameter : graph_.parameters) {
      const std::vector<NodeId>& of = users[parameter.value.index()];
      if (!parameter.trainable || of.size() < 2) continue;
      for (NodeId n = of.front(); n < of.back(); ++n.value) {
        Bytes& bytes = memory_.temporary[n.index()].backward;
        bytes = std::max(bytes - parameter.type.bytes(), Bytes{0});
      }
    }
  }

  /// What W needs of a node comes while later nodes run: it counts for them until it is its own.
  void add_input_temporary(const AllocationLog& log, std::pair<std::size_t, std::size_t> events) {
    const std::vector<Bytes> most = log.highest(events.first, events.second);
    Bytes kept{0};
    for (std::size_t n = most.size(); n-- > 0;) {
      kept += memory_.weight_saved[n];
      memory_.temporary[n].input = std::max(most[n] - kept, Bytes{0});
    }
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  const Graph& graph_;
  const RankTensors& tensors_;
  const StepInputs& inputs_;
  std::vector<std::size_t> index_;  // [value] into memory_.storages
  std::vector<Saved> saved_;
  NodeMemory memory_;
};

}  // namespace

Bytes NodeMemory::all_saved() const {
  Bytes sum{0};
  for (const SavedStorage& storage : storages) sum += storage.bytes;
  for (const Bytes bytes : saved) sum += bytes;
  return sum;
}

Bytes NodeMemory::all_weight_saved() const {
  Bytes sum{0};
  for (const SavedStorage& storage : storages)
    if (!storage.weight_savers.empty()) sum += storage.bytes;
  for (const Bytes bytes : weight_saved) sum += bytes;
  return sum;
}

NodeMemory measure_memory(const Graph& graph, const RankTensors& tensors, const StepInputs& inputs,
                          GraphStage& joint, GraphStage& split) {
  MemoryMeter meter(graph, tensors, inputs);
  meter.note_saved(joint);
  meter.run_joint(joint);
  meter.run_split(split);
  return std::move(meter).result();
}

}  // namespace pfeife
