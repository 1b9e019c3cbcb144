#include "tests/gpu/card/plain_loop.h"

#include "planner/ir/basics/error.h"

namespace pfeife::card {

PlainLoop::PlainLoop(const Graph& graph, RankTensors tensors, const RankOptions& options)
    : graph_(graph),
      options_(options),
      effects_(effects_of(graph)),
      split_(whole_graph(graph, effects_)),
      program_(compile_stage(graph, effects_, split_.stages[0], {}, {},
                             {.placing = options.placing, .plain_backward = true})),
      tensors_(std::move(tensors)),
      values_(graph.values.size()),
      loss_(loss_of(graph)) {
  for (const auto& [p, tensor] : tensors_.parameters) parameters_.push_back({p, 0, tensor.numel()});
}

at::Tensor PlainLoop::forward(const std::map<ValueId, at::Tensor>& inputs) {
  const auto type = options_.placing.device.type();
  at::autocast::set_autocast_enabled(type, options_.autocast.has_value());
  if (options_.autocast) at::autocast::set_autocast_dtype(type, *options_.autocast);
  for (const auto& [p, tensor] : tensors_.parameters)
    values_[graph_.parameters[p.index()].value.index()] = tensor;
  for (const auto& [b, tensor] : tensors_.buffers) values_[b.index()] = tensor;
  for (const auto& [i, tensor] : inputs) values_[i.index()] = tensor;
  for (const Instruction& instruction : program_) {
    std::vector<c10::IValue> stack = arguments(instruction, values_);
    instruction.call.op.callBoxed(stack);
    const auto list = instruction.returns_list ? stack.at(0).toTensorVector() : Tensors{};
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      at::Tensor& value = values_[instruction.outputs[i].index()];
      if (instruction.returns_list)
        value = list.at(i);
      else if (stack.at(i).isTensor())
        value = stack[i].toTensor();
    }
    for (const ValueId v : instruction.last_uses) values_[v.index()].reset();
  }
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(type, false);
  const at::Tensor loss = values_[loss_.index()];
  for (at::Tensor& value : values_) value.reset();
  return loss;
}

at::Tensor PlainLoop::step(const StepInputs& inputs) {
  at::Tensor mean;
  for (std::size_t m = 0; m < inputs.microbatches.size(); ++m) {
    const at::Tensor loss = forward(inputs.microbatches[m]);
    torch::autograd::backward({loss}, {at::full_like(loss, inputs.shares[m])});
    const at::Tensor share = loss.detach() * inputs.shares[m];
    mean = mean.defined() ? mean + share : share;
  }
  update(tensors_, parameters_, state_, options_.optimizer, ++updates_);
  return mean;
}

}  // namespace pfeife::card
