#include "runtime/model/stage_program.h"

namespace pfeife {

std::optional<BatchNormArguments> batch_norm_arguments(const Call& call) {
  if (call.op.schema().name() != "aten::batch_norm") return {};
  const auto place = [&](const char* name) {
    return *call.op.schema().argumentIndexWithName(name);
  };
  const auto is_hole = [&](std::size_t argument) {
    for (const Call::Hole& hole : call.holes)
      if (hole.argument == argument) return true;
    return false;
  };
  const BatchNormArguments at{
      static_cast<std::size_t>(place("input")), static_cast<std::size_t>(place("running_mean")),
      static_cast<std::size_t>(place("running_var")), static_cast<std::size_t>(place("momentum"))};
  if (!call.stack[static_cast<std::size_t>(place("training"))].toBool() || !is_hole(at.mean) ||
      !is_hole(at.variance))
    return {};
  return at;
}

void BatchStatistics::call(std::uint64_t node, const Call& call, const BatchNormArguments& at,
                           std::vector<c10::IValue>& stack, bool counts) {
  const at::Tensor input = stack[at.input].toTensor(), running_mean = stack[at.mean].toTensor(),
                   running_variance = stack[at.variance].toTensor();
  const double momentum = stack[at.momentum].toDouble();
  // With momentum 1 the operator leaves the microbatch's own statistics where it would update.
  const at::Tensor mean = at::zeros_like(running_mean), variance = at::zeros_like(running_variance);
  stack[at.mean] = mean;
  stack[at.variance] = variance;
  stack[at.momentum] = 1.0;
  call.op.callBoxed(stack);
  if (!counts) return;
  const at::NoGradGuard no_history;
  const double count = static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
  OfNode& known = nodes_[node];
  if (known.count == 0)
    known = {running_mean,         running_variance,    momentum, 0,
             at::zeros_like(mean), at::zeros_like(mean)};
  // Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance".
  const double all = known.count + count;
  const at::Tensor distance = mean - known.mean;
  known.mean += distance * (count / all);
  if (count > 1) known.squares += variance * (count - 1);
  known.squares += distance.square() * (known.count * count / all);
  known.count = all;
}

void BatchStatistics::commit() {
  const at::NoGradGuard no_history;
  for (auto& [node, known] : nodes_) {
    known.running_mean.lerp_(known.mean, known.momentum);
    known.running_variance.lerp_(known.squares / (known.count - 1), known.momentum);
  }
  nodes_.clear();
  counted_.clear();
}

}  // namespace pfeife
