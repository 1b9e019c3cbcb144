#include "runtime/model/optimizer.h"

namespace pfeife {
namespace {

at::Tensor& state_of(std::map<std::string, at::Tensor>& state, const char* name,
                     const at::Tensor& like) {
  at::Tensor& tensor = state[name];
  if (!tensor.defined()) tensor = at::zeros_like(like);
  return tensor;
}

/// Parameters that LibTorch updates in one call: of one type, with or without a state so far.
struct Group {
  std::vector<at::Tensor> parameters, gradients;
  std::vector<std::map<std::string, at::Tensor>*> states;

  std::vector<at::Tensor> state(const char* name) const {
    std::vector<at::Tensor> tensors;
    for (std::size_t i = 0; i < states.size(); ++i)
      tensors.push_back(state_of(*states[i], name, parameters[i]));
    return tensors;
  }
};

void update_sgd(const Group& group, bool first, const OptimizerOptions& o) {
  const bool momentum = o.kind == Optimizer::Momentum;
  at::_fused_sgd_(group.parameters, group.gradients,
                  momentum ? group.state("momentum_buffer") : std::vector<at::Tensor>(),
                  o.weight_decay, momentum ? o.momentum : 0, o.learning_rate,
                  /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false, first);
}

void update_adam(const Group& group, const OptimizerOptions& o, std::int64_t step) {
  const std::vector<at::Tensor> steps(
      group.parameters.size(), at::full({}, static_cast<double>(step),
                                        group.parameters.front().options().dtype(at::kFloat)));
  const auto averages = group.state("exp_avg"), squares = group.state("exp_avg_sq");
  if (o.kind == Optimizer::AdamW)
    at::_fused_adamw_(group.parameters, group.gradients, averages, squares, {}, steps,
                      o.learning_rate, o.beta1, o.beta2, o.weight_decay, o.epsilon, false, false);
  else
    at::_fused_adam_(group.parameters, group.gradients, averages, squares, {}, steps,
                     o.learning_rate, o.beta1, o.beta2, o.weight_decay, o.epsilon, false, false);
}

/// The elements of a parameter or of its gradient; as it is if that is all.
at::Tensor elements(const at::Tensor& tensor, const ParameterRange& range) {
  if (range.count == tensor.numel()) return tensor;
  return tensor.view({-1}).narrow(0, range.begin, range.count);
}

}  // namespace

const std::vector<std::string>& state_names(Optimizer kind) {
  static const std::vector<std::string> kNone, kMomentum{"momentum_buffer"},
      kAdam{"exp_avg", "exp_avg_sq"};
  if (kind == Optimizer::Sgd) return kNone;
  return kind == Optimizer::Momentum ? kMomentum : kAdam;
}

void update(RankTensors& tensors, std::span<const ParameterRange> parameters, OptimizerState& state,
            const OptimizerOptions& options, std::int64_t step) {
  const at::NoGradGuard no_gradients;
  std::map<std::pair<at::ScalarType, bool>, Group> groups;  // by type, and whether it has no state
  for (const ParameterRange& range : parameters) {
    const at::Tensor& parameter = tensors.parameters.at(range.parameter);
    if (!parameter.grad().defined()) continue;
    auto& known = state[range.parameter];
    Group& group = groups[{parameter.scalar_type(), known.empty()}];
    group.parameters.push_back(elements(parameter.detach(), range));
    group.gradients.push_back(elements(parameter.grad(), range));
    group.states.push_back(&known);
  }
  for (auto& [kind, group] : groups) {
    if (options.kind == Optimizer::Sgd || options.kind == Optimizer::Momentum)
      update_sgd(group, /*first=*/kind.second, options);
    else
      update_adam(group, options, step);
    at::_foreach_zero_(group.gradients);  // kept: plans count gradients as there throughout
  }
}

}  // namespace pfeife
