#include "runtime/model/graph_stage.h"

#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <functional>
#include <set>

#include "planner/ir/basics/error.h"
#include "runtime/model/stage_program.h"
#include "runtime/model/weights.h"

namespace pfeife {
namespace {

/// What a backward from the tensor runs; invalid if it has no history.
torch::autograd::Edge history_of(const at::Tensor& tensor) {
  return tensor.requires_grad() ? torch::autograd::impl::gradient_edge(tensor)
                                : torch::autograd::Edge();
}

PerStage undefined(const std::vector<std::vector<Crossing>>& crossings) {
  PerStage all;
  for (const auto& message : crossings) all.emplace_back(message.size());
  return all;
}

/// To be there after the microbatch: without history, and without a storage larger than itself (a
/// loss may lie in that of the terms it is the sum of).
at::Tensor result_of(const at::Tensor& value) {
  const at::Tensor bare = value.detach();
  return bare.storage().nbytes() > bare.nbytes() ? bare.clone() : bare;
}

template <class Map>
auto& entry(Map& map, const typename Map::key_type& key, const char* what) {
  const auto found = map.find(key);
  PFEIFE_CHECK(found != map.end(), what);
  return found->second;
}

}  // namespace

std::vector<double> equal_shares(std::size_t microbatches) {
  return std::vector<double>(microbatches, 1.0 / static_cast<double>(microbatches));
}

ValueId loss_of(const Graph& graph) {
  for (const ValueId out : graph.outputs) {
    const TensorType& type = graph.value(out).type;
    if (is_floating(type.dtype) && type.elements() == 1 && out != graph.loss_weight) return out;
  }
  throw ConfigError(
      {graph.name},
      "has no output that is a floating scalar; export the forward pass with its loss");
}

GraphStage::GraphStage(const Graph& graph, const std::vector<NodeEffects>& effects,
                       const GraphSplit& split, StageId stage, RankTensors& tensors,
                       RandomTurns& turns, const StageOptions& options)
    : graph_(graph),
      tensors_(tensors),
      turns_(turns),
      options_(options),
      casts_(options.autocast, options.placing.device.type()),
      slice_(split.stages[stage.index()]) {
  const ValueId loss = loss_of(graph);
  if (std::ranges::find(slice_.outputs, loss) != slice_.outputs.end()) loss_value_ = loss;
  std::set<ValueId> sent;
  for (const Crossing& c : split.crossings) {
    if (c.from == stage) {
      if (destinations_.empty() || destinations_.back() != c.to)
        destinations_.push_back(c.to), to_.emplace_back();
      to_.back().push_back(c);
      sent.insert(c.value);
    }
    if (c.to == stage) {
      if (sources_.empty() || sources_.back() != c.from)
        sources_.push_back(c.from), from_.emplace_back();
      from_.back().push_back(c);
    }
  }
  sent_.assign(sent.begin(), sent.end());
  values_.resize(graph.values.size());
  add_size(graph, effects);
}

void GraphStage::add_size(const Graph& resized, const std::vector<NodeEffects>& effects) {
  if (programs_.contains(resized.microbatch_size)) return;
  std::vector<ValueId> received;
  for (const auto& crossings : from_)
    for (const Crossing& c : crossings) received.push_back(c.value);
  const StageProgram& program = programs_[resized.microbatch_size] =
      compile_stage(resized, effects, slice_, received, sent_, options_);
  std::vector<ValueId> needed = sent_;
  needed.insert(needed.end(), slice_.outputs.begin(), slice_.outputs.end());
  blocks_[resized.microbatch_size] = program_blocks(resized, program, options_.blocks, needed);
}

void GraphStage::begin(const StepInputs& inputs, std::vector<double> shares, double factor) {
  PFEIFE_CHECK(flights_.empty() && queues_.empty(), "a step begins while another is under way");
  inputs_ = &inputs;
  shares_ = std::move(shares);
  factor_ = factor * inputs.factor;
  losses_.clear();
  outputs_.clear();
}

std::optional<at::Tensor> GraphStage::loss(MicrobatchId m) const {
  const auto found = losses_.find(m);
  return found == losses_.end() ? std::nullopt : std::optional(found->second);
}

at::Tensor GraphStage::output(MicrobatchId m, ValueId value) const {
  if (inputs_->samples_of(m, graph_) == 0) return {};
  return entry(outputs_, {m, value}, "no output of the stage");
}

c10::intrusive_ptr<WeightQueue> GraphStage::queue(MicrobatchId m) {
  auto& queue = queues_[m];
  if (!queue) queue = c10::make_intrusive<WeightQueue>();
  return queue;
}

void GraphStage::fill_values(MicrobatchId m, const Flight& flight) {
  for (const ParameterId p : slice_.parameters)
    values_[graph_.parameters[p.index()].value.index()] = tensors_.parameters.at(p);
  for (const ValueId b : slice_.buffers)
    values_[b.index()] = flight.buffers.contains(b) ? flight.buffers.at(b) : tensors_.buffers.at(b);
  for (const ValueId i : slice_.inputs)
    values_[i.index()] = entry(inputs_->microbatches.at(m.index()), i, "model input is missing");
  for (std::size_t s = 0; s < from_.size(); ++s)
    for (std::size_t c = 0; c < from_[s].size(); ++c)
      values_[from_[s][c].value.index()] = flight.received[s][c];
}

void GraphStage::execute(const Instruction& instruction, MicrobatchId m, bool again) {
  if (instruction.counts_batches && (again || !statistics_.first(instruction.node))) return;
  std::vector<c10::IValue> stack = arguments(instruction, values_);
  std::unique_lock<std::mutex> turn;
  if (instruction.random) {
    turn = std::unique_lock(turns_.mutex);
    auto generator = at::globalContext().defaultGenerator(options_.placing.device);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(
        mixed_seed({options_.seed, inputs_->step, inputs_->first_microbatch + m.index(),
                    hash_of(graph_.nodes[instruction.node].name)}));
  }
  if (instruction.deferred && at::GradMode::is_enabled())
    call_deferred(*instruction.deferred, NodeId{instruction.node}, stack,
                  options_.split_backward ? queue(m) : nullptr,
                  instruction.casts.empty() ? nullptr : &casts_);
  else if (instruction.batch_norm)
    statistics_.call(instruction.node, instruction.call, *instruction.batch_norm, stack, !again);
  else
    call_plainly(instruction, stack);
  if (instruction.returns_list) {
    const auto list = stack.at(0).toTensorVector();
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
      values_[instruction.outputs[i].index()] = list.at(i);
  } else {
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i)
      if (stack.at(i).isTensor()) values_[instruction.outputs[i].index()] = stack[i].toTensor();
  }
}

void GraphStage::call_plainly(const Instruction& instruction, std::vector<c10::IValue>& stack) {
  for (const std::size_t argument : instruction.casts)
    stack[argument] = casts_.narrow(stack[argument].toTensor());
  instruction.call.op.callBoxed(stack);
}

void GraphStage::run_instruction(const Instruction& instruction, MicrobatchId m, bool again) {
  const NodeId node{instruction.node};
  if (observer_) observer_->before_node(node);
  try {
    execute(instruction, m, again);
  } catch (const c10::Error& error) {
    throw RuntimeFault("node '" + graph_.nodes[instruction.node].name + "' (" +
                       graph_.nodes[instruction.node].op + "): " + error.what_without_backtrace());
  }
  if (observer_) observer_->computed(node, instruction.outputs, values_);
  for (const ValueId v : instruction.last_uses) values_[v.index()].reset();
  if (observer_) observer_->after_node(node);
}

namespace {

/// The history of what a block makes: its backward runs the block again.
struct BlockNode : torch::autograd::Node {
  using Run = std::function<torch::autograd::variable_list(
      const std::vector<at::Tensor>& inputs, const torch::autograd::variable_list& gradients)>;
  Run run;
  std::vector<torch::autograd::SavedVariable> inputs;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    std::vector<at::Tensor> unpacked;
    for (const auto& input : inputs) unpacked.push_back(input.unpack());
    return run(unpacked, gradients);
  }
  void release_variables() override {
    run = nullptr;
    inputs.clear();
  }
};

}  // namespace

/// Runs a block without history, and gives what it makes one that knows its inputs alone.
void GraphStage::run_block(const ProgramBlock& block, MicrobatchId m, const Flight& flight) {
  std::vector<at::Tensor> inputs;
  for (const ValueId v : block.inputs) inputs.push_back(values_[v.index()]);
  std::map<ValueId, at::Tensor> buffers;
  for (const ValueId b : block.buffers)
    if (std::ranges::binary_search(slice_.written_buffers, b))
      buffers[b] = values_[b.index()].clone();
  {
    const at::NoGradGuard no_history;
    for (std::size_t i = block.begin; i < block.end; ++i)
      run_instruction((*flight.program)[i], m, /*again=*/false);
  }
  const auto node = std::shared_ptr<BlockNode>(new BlockNode, torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (const ValueId v : block.outputs) {
    at::Tensor& value = values_[v.index()];
    value = value.detach();
    if (graph_.value(v).requires_grad) torch::autograd::set_history(value, node);
  }
  for (const at::Tensor& input : inputs) node->inputs.emplace_back(input, /*is_output=*/false);
  node->run = [this, &block, m, buffers](const std::vector<at::Tensor>& of,
                                         const torch::autograd::variable_list& gradients) {
    return run_block_backward(block, m, of, buffers, gradients);
  };
}

/// `gradients`: of those outputs that take one. Result: [input].
torch::autograd::variable_list GraphStage::run_block_backward(
    const ProgramBlock& block, MicrobatchId m, const std::vector<at::Tensor>& inputs,
    const std::map<ValueId, at::Tensor>& buffers, const torch::autograd::variable_list& gradients) {
  std::vector<at::Tensor> leaves;
  torch::autograd::edge_list roots;
  {
    const at::AutoGradMode history(true);
    const CastCache::Forward under_autocast(casts_);
    fill_values(m, *backward_);
    for (const auto& [b, before] : buffers) values_[b.index()] = before;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      leaves.push_back(inputs[i].detach().set_requires_grad(inputs[i].requires_grad()));
      values_[block.inputs[i].index()] = leaves.back();
    }
    for (std::size_t i = block.begin; i < block.end; ++i)
      run_instruction((*backward_->program)[i], m, /*again=*/true);
  }
  torch::autograd::variable_list root_gradients;
  std::size_t next = 0;
  for (const ValueId v : block.outputs) {
    if (!graph_.value(v).requires_grad) continue;
    const at::Tensor& gradient = gradients[next++];
    const torch::autograd::Edge root = history_of(values_[v.index()]);
    if (gradient.defined() && root.is_valid())
      roots.push_back(root), root_gradients.push_back(gradient);
  }
  for (at::Tensor& value : values_) value.reset();
  if (!roots.empty())
    torch::autograd::Engine::get_default_engine().execute(roots, root_gradients, false, false,
                                                          true);
  torch::autograd::variable_list back;
  for (at::Tensor& leaf : leaves)
    back.push_back(leaf.requires_grad() ? std::move(leaf.mutable_grad()) : at::Tensor());
  return back;
}

/// Returns what leaves the stage: [sent value], then the loss if it is made here.
std::vector<at::Tensor> GraphStage::run_nodes(MicrobatchId m, Flight& flight, bool with_history,
                                              bool again) {
  const at::AutoGradMode history(with_history);
  const CastCache::Forward under_autocast(casts_);
  fill_values(m, flight);
  auto block = flight.blocks->begin();
  for (std::size_t i = 0; i < flight.program->size();) {
    if (with_history && block != flight.blocks->end() && block->begin == i) {
      run_block(*block, m, flight);
      i = (block++)->end;
    } else {
      run_instruction((*flight.program)[i++], m, again);
    }
  }
  std::vector<at::Tensor> results;
  flight.roots.clear();
  for (const ValueId v : sent_) {
    results.push_back(values_[v.index()]);
    flight.roots.push_back(history_of(results.back()));
  }
  if (loss_value_) {
    results.push_back(values_[loss_value_->index()]);
    flight.loss_root = history_of(results.back());
  }
  if (!again)
    for (const ValueId v : slice_.outputs) outputs_[{m, v}] = result_of(values_[v.index()]);
  for (at::Tensor& value : values_) value.reset();
  return results;
}

/// Lets go of the bytes of what was received where nobody keeps the tensor: to hand back a
/// gradient, a leaf needs none. Its handles are ours and, if it takes a gradient, that of its
/// accumulator. Whoever else holds the bytes (a view that was saved, the stage that sent them)
/// keeps them.
void GraphStage::let_go_of_received(Flight& flight) const {
  for (Tensors& tensors : flight.received)
    for (at::Tensor& leaf : tensors) {
      if (!leaf.requires_grad()) {
        leaf.reset();
      } else if (leaf.use_count() == 2) {
        c10::TensorImpl& impl = *leaf.unsafeGetTensorImpl();
        impl.set_allow_tensor_metadata_change(true);
        impl.set_storage_keep_dtype(c10::Storage::create_legacy(leaf.device()));
      }
    }
}

/// Others write into buffers while a microbatch is in flight, which keeps what it saved and sent.
/// Evaluation leaves all buffers as they are.
void GraphStage::take_own_buffers(Flight& flight) {
  for (const ValueId b : options_.training ? slice_.microbatch_buffers : slice_.written_buffers) {
    at::Tensor own = tensors_.buffers.at(b).clone();
    (options_.training ? tensors_.buffers.at(b) : flight.buffers[b]) = std::move(own);
  }
}

PerStage GraphStage::forward(MicrobatchId m, const PerStage& received) {
  Flight flight;
  const std::int64_t samples = inputs_->samples_of(m, graph_);
  if (samples == 0) return forward_nothing(m);
  flight.program = &entry(programs_, samples, "no program for this microbatch size");
  const bool kept = options_.kept == m;
  flight.blocks =
      kept ? &no_blocks_ : &entry(blocks_, samples, "no program for this microbatch size");
  flight.again = options_.recompute && !kept;
  for (std::size_t s = 0; s < from_.size(); ++s) {
    Tensors leaves;
    for (std::size_t c = 0; c < from_[s].size(); ++c)
      leaves.push_back(
          received[s].at(c).detach().set_requires_grad(from_[s][c].gradient && options_.training));
    flight.received.push_back(std::move(leaves));
  }
  const bool history = options_.training && !flight.again;
  std::map<ValueId, at::Tensor> before;
  if (flight.again)
    for (const ValueId b : slice_.written_buffers) before[b] = tensors_.buffers.at(b).clone();
  take_own_buffers(flight);
  const std::vector<at::Tensor> results = options_.offloaded.contains(m)
                                              ? run_noting_saved(m, flight)
                                              : run_nodes(m, flight, history, /*again=*/false);
  if (flight.again) flight.buffers = std::move(before);
  if (loss_value_) {
    const at::Tensor& loss = outputs_.at({m, *loss_value_});
    losses_[m] = counts(m) ? loss : at::zeros_like(loss);  // no labels: 0 / 0
  }
  PerStage handed;
  for (const auto& crossings : to_) {
    Tensors tensors;
    for (const Crossing& c : crossings) {
      const auto at = std::ranges::lower_bound(sent_, c.value) - sent_.begin();
      tensors.push_back(results[static_cast<std::size_t>(at)].detach());
    }
    handed.push_back(std::move(tensors));
  }
  if (flight.again)
    flight.roots.clear(), flight.loss_root = {};
  else
    let_go_of_received(flight);
  if (options_.training) flights_[m] = std::move(flight);
  return handed;
}

/// What the forward saves of a microbatch that is offloaded: what autograd keeps, or of a forward
/// that runs again what it received.
std::vector<at::Tensor> GraphStage::run_noting_saved(MicrobatchId m, Flight& flight) {
  const SavedTensorNotes notes([&](const at::Tensor& held) {
    if (held.has_storage()) flight.saved.emplace_back(held.getIntrusivePtr());
  });
  std::vector<at::Tensor> results = run_nodes(m, flight, !flight.again, /*again=*/false);
  if (flight.again)
    for (const Tensors& tensors : flight.received)
      for (const at::Tensor& tensor : tensors) flight.saved.emplace_back(tensor.getIntrusivePtr());
  std::set<const c10::StorageImpl*> sent;
  for (const at::Tensor& tensor : results) sent.insert(tensor.storage().unsafeGetStorageImpl());
  std::erase_if(flight.saved, [&](const auto& held) {
    const auto tensor = held.lock();
    return !tensor || sent.contains(tensor->storage().unsafeGetStorageImpl());
  });
  return results;
}

/// Storages that nothing but the backward needs: others hold parameters, buffers, the model's
/// inputs, results, and what another stage has saved, too.
std::vector<c10::Storage> GraphStage::to_offload(const Flight& flight) const {
  struct Held {
    c10::Storage storage;
    std::size_t tensors = 0;
  };
  std::vector<Held> found;  // in the order in which they were saved first
  std::map<const c10::StorageImpl*, std::size_t> number;
  for (const auto& held : flight.saved) {
    const auto tensor = held.lock();
    if (!tensor) continue;
    const c10::Storage& storage = tensor->storage();
    const auto [at, fresh] = number.try_emplace(storage.unsafeGetStorageImpl(), found.size());
    if (fresh) found.push_back({storage});
    ++found[at->second].tensors;
  }
  std::erase_if(found, [&](const Held& held) {
    return held.storage.use_count() != held.tensors + 1 ||
           held.storage.device_type() != options_.placing.device.type() ||
           held.storage.allocator() == nullptr;
  });
  std::size_t all = 0;
  for (const Held& held : found) all += held.storage.nbytes();
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const Held& held) { return held.storage.nbytes(); });
  double left = options_.offload_share * static_cast<double>(all);
  const auto least = static_cast<std::size_t>(options_.least_offloaded.value);
  std::vector<c10::Storage> chosen;
  for (const Held& held : found) {
    const std::size_t bytes = held.storage.nbytes();
    if (bytes < least || static_cast<double>(bytes) > left + 0.5) continue;
    left -= static_cast<double>(bytes);
    chosen.push_back(held.storage);
  }
  return chosen;
}

HostEngines::Span GraphStage::offload(MicrobatchId m, HostEngines& engines,
                                      const HostEngines::Mark& mark) {
  Flight& flight = entry(flights_, m, "OFFLOAD without forward");
  const std::vector<c10::Storage> storages = to_offload(flight);
  flight.saved.clear();
  return engines.offload(storages, flight.on_host, mark);
}

HostEngines::Span GraphStage::reload(MicrobatchId m, HostEngines& engines,
                                     const HostEngines::Mark& mark) {
  return engines.reload(entry(flights_, m, "RELOAD without forward").on_host, mark);
}

const OnHost& GraphStage::on_host(MicrobatchId m) const {
  return entry(flights_, m, "no microbatch is under way").on_host;
}

/// A microbatch without samples: nothing to hand on, a loss that counts nothing.
PerStage GraphStage::forward_nothing(MicrobatchId m) {
  if (loss_value_) losses_[m] = at::zeros({});
  if (options_.training) flights_[m] = {};
  return undefined(to_);
}

PerStage GraphStage::run_backward(MicrobatchId m, const PerStage& gradients) {
  Flight flight = std::move(entry(flights_, m, "backward without forward"));
  flights_.erase(m);
  if (flight.program == nullptr) return undefined(from_);
  if (flight.again) run_nodes(m, flight, /*with_history=*/true, /*again=*/true);
  std::vector<at::Tensor> of_root(sent_.size());
  for (std::size_t d = 0; d < to_.size(); ++d)
    for (std::size_t c = 0; c < gradients[d].size(); ++c) {
      const at::Tensor& gradient = gradients[d].at(c);
      if (!to_[d][c].gradient || !gradient.defined()) continue;
      const auto at = std::ranges::lower_bound(sent_, to_[d][c].value) - sent_.begin();
      at::Tensor& sum = of_root[static_cast<std::size_t>(at)];
      sum = sum.defined() ? sum + gradient : gradient;
    }
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> root_gradients;
  for (std::size_t r = 0; r < sent_.size(); ++r)
    if (of_root[r].defined() && flight.roots[r].is_valid()) {
      roots.push_back(std::move(flight.roots[r]));
      root_gradients.push_back(of_root[r]);
    }
  if (loss_value_ && counts(m) && flight.loss_root.is_valid()) {
    roots.push_back(std::move(flight.loss_root));
    root_gradients.push_back(at::full_like(losses_.at(m), factor_ * shares_.at(m.index())));
  }
  flight.roots.clear();
  backward_ = &flight;
  if (!roots.empty())
    torch::autograd::Engine::get_default_engine().execute(roots, root_gradients, false, false,
                                                          true);
  PerStage back;
  for (std::size_t s = 0; s < from_.size(); ++s) {
    Tensors tensors;
    for (std::size_t c = 0; c < from_[s].size(); ++c)
      tensors.push_back(gradient_of(m, from_[s][c], flight.received[s][c]));
    back.push_back(std::move(tensors));
  }
  return back;
}

/// What goes back for a received value; taken from the leaf, which W may keep. Where the loss
/// counts nothing, zeros in place of a gradient that others get: messages of a kind are alike.
at::Tensor GraphStage::gradient_of(MicrobatchId m, const Crossing& received, at::Tensor& leaf) {
  if (!received.gradient) return {};
  at::Tensor gradient = std::move(leaf.mutable_grad());
  if (!loss_value_ || gradient.defined()) return gradient;
  if (counts(m)) no_gradient_.insert(received.value);
  return no_gradient_.contains(received.value) ? at::Tensor() : at::zeros_like(leaf);
}

PerStage GraphStage::backward(MicrobatchId m, const PerStage& gradients) {
  PerStage back = run_backward(m, gradients);
  if (queues_.contains(m)) backward_weight(m);
  return back;
}

PerStage GraphStage::backward_input(MicrobatchId m, const PerStage& gradients) {
  PFEIFE_CHECK(options_.split_backward, "I asked of a stage that was not prepared for it");
  PerStage back = run_backward(m, gradients);
  queue(m);  // so that W finds one, be it empty
  return back;
}

void GraphStage::backward_weight(MicrobatchId m) {
  const auto queue = entry(queues_, m, "W without I");
  queues_.erase(m);
  queue->run(observer_);
}

const WeightQueue& GraphStage::pending(MicrobatchId m) const {
  return *entry(queues_, m, "no weight gradients are pending");
}

}  // namespace pfeife
