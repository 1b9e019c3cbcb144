#include "runtime/optimizer.h"

namespace pfeife {
namespace {

at::Tensor& state_of(std::map<std::string, at::Tensor>& state, const char* name,
                     const at::Tensor& like) {
  at::Tensor& tensor = state[name];
  if (!tensor.defined()) tensor = at::zeros_like(like);
  return tensor;
}

void update_one(at::Tensor parameter, const at::Tensor& gradient,
                std::map<std::string, at::Tensor>& state, const OptimizerOptions& o,
                std::int64_t step) {
  if (o.kind == Optimizer::Sgd || o.kind == Optimizer::Momentum) {
    const bool first = !state.contains("momentum_buffer");
    at::TensorList buffers;
    std::vector<at::Tensor> momentum;
    if (o.kind == Optimizer::Momentum)
      momentum = {state_of(state, "momentum_buffer", parameter)}, buffers = momentum;
    at::_fused_sgd_({parameter}, {gradient}, buffers, o.weight_decay,
                    o.kind == Optimizer::Momentum ? o.momentum : 0, o.learning_rate,
                    /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false, first);
    return;
  }
  const at::Tensor average = state_of(state, "exp_avg", parameter),
                   square = state_of(state, "exp_avg_sq", parameter);
  const at::Tensor steps =
      at::full({}, static_cast<double>(step),
               at::TensorOptions().dtype(at::kFloat).device(parameter.device()));
  if (o.kind == Optimizer::AdamW)
    at::_fused_adamw_({parameter}, {gradient}, {average}, {square}, {}, {steps}, o.learning_rate,
                      o.beta1, o.beta2, o.weight_decay, o.epsilon, false, false);
  else
    at::_fused_adam_({parameter}, {gradient}, {average}, {square}, {}, {steps}, o.learning_rate,
                     o.beta1, o.beta2, o.weight_decay, o.epsilon, false, false);
}

}  // namespace

void update(RankTensors& tensors, std::span<const ParameterId> parameters, OptimizerState& state,
            const OptimizerOptions& options, std::int64_t step) {
  const at::NoGradGuard no_gradients;
  for (const ParameterId p : parameters) {
    at::Tensor parameter = tensors.parameters.at(p);
    if (!parameter.grad().defined()) continue;
    const at::Tensor gradient = parameter.grad();
    update_one(parameter.detach(), gradient, state[p], options, step);
    gradient.zero_();  // kept: plans count gradients as there throughout
  }
}

}  // namespace pfeife
