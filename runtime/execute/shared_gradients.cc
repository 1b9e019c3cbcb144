#include "runtime/execute/shared_gradients.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"
#include "runtime/model/loss.h"

namespace pfeife {
namespace {

/// What this replica has sums of in the gradient.
Tensors own_parts(ParameterId parameter, const at::Tensor& gradient,
                  const ReplicaGradients& replicas) {
  Tensors parts;
  for (const ParameterRange& range : replicas.own({&parameter, 1}))
    parts.push_back(range.count == gradient.numel()
                        ? gradient
                        : gradient.view({-1}).narrow(0, range.begin, range.count));
  return parts;
}

}  // namespace

bool SharedGradients::uses(RankId rank, ParameterId parameter) const {
  for (std::size_t s = 0; s < pipeline_.stages.stages; ++s)
    if (pipeline_.placement.rank_of_stage[s] == rank &&
        std::ranges::binary_search(pipeline_.split.stages[s].parameters, parameter))
      return true;
  return false;
}

bool SharedGradients::held_by_other(ParameterId parameter, std::size_t below) const {
  if (pipeline_.stages.tied.empty()) return false;
  for (std::size_t r = 0; r < below; ++r)
    if (RankId{r} != rank_ && uses(RankId{r}, parameter)) return true;
  return false;
}

/// Trainable parameters of the reduction's stages that both ranks hold, by number.
std::vector<ParameterId> SharedGradients::shared_in(const Task& reduction, RankId other) const {
  const auto& stages = pipeline_.tasks.slots[reduction.slot].stages;
  std::vector<ParameterId> shared;
  for (std::size_t p = 0; p < pipeline_.graph.parameters.size(); ++p) {
    const ParameterId id{p};
    const bool here = std::ranges::any_of(stages, [&](StageId s) {
      return std::ranges::binary_search(pipeline_.split.stages[s.index()].parameters, id);
    });
    if (here && pipeline_.graph.parameters[p].trainable && uses(rank_, id) && uses(other, id))
      shared.push_back(id);
  }
  return shared;
}

void SharedGradients::begin_step() {
  for (const auto& group : pipeline_.stages.tied)
    for (auto& [p, tensor] : tensors_.parameters) {
      if (!tensor.grad().defined()) continue;
      const bool shared = std::ranges::any_of(group, [&](StageId s) {
        return pipeline_.placement.rank(s) != rank_ &&
               std::ranges::binary_search(pipeline_.split.stages[s.index()].parameters, p);
      });
      if (!shared) continue;
      earlier_[p] = tensor.grad();
      tensor.mutable_grad().reset();
    }
}

Tensors SharedGradients::part_for(const Task& reduction, RankId other) const {
  Tensors gradients;
  for (const ParameterId p : shared_in(reduction, other))
    gradients.push_back(tensors_.parameters.at(p).grad());
  return gradients;
}

void SharedGradients::add_up(const Task& reduction, const std::map<RankId, Tensors>& parts) {
  std::map<ParameterId, std::map<RankId, at::Tensor>> by_parameter;
  for (const auto& [other, tensors] : parts) {
    const auto shared = shared_in(reduction, other);
    PFEIFE_CHECK(shared.size() == tensors.size(), "parts of a reduction differ");
    for (std::size_t i = 0; i < shared.size(); ++i) by_parameter[shared[i]][other] = tensors[i];
  }
  for (auto& [p, of_rank] : by_parameter) {
    of_rank[rank_] = tensors_.parameters.at(p).grad();
    at::Tensor sum;
    for (const auto& [rank, gradient] : of_rank)
      if (gradient.defined()) sum = sum.defined() ? sum.add_(gradient) : gradient.clone();
    put(p, sum);
  }
}

void SharedGradients::put(ParameterId parameter, at::Tensor sum) {
  if (const auto before = earlier_.extract(parameter))
    sum = sum.defined() ? before.mapped() + sum : before.mapped();
  tensors_.parameters.at(parameter).mutable_grad() = std::move(sum);
}

std::vector<ParameterId> SharedGradients::held_by_several(const Task& reduction) const {
  const auto& stages = pipeline_.tasks.slots[reduction.slot].stages;
  std::vector<ParameterId> shared;
  for (std::size_t p = 0; p < pipeline_.graph.parameters.size(); ++p) {
    const ParameterId id{p};
    const bool here = std::ranges::any_of(stages, [&](StageId s) {
      return std::ranges::binary_search(pipeline_.split.stages[s.index()].parameters, id);
    });
    if (here && pipeline_.graph.parameters[p].trainable &&
        std::ranges::count_if(reduction.parties, [&](RankId r) { return uses(r, id); }) > 1)
      shared.push_back(id);
  }
  return shared;
}

Tensors SharedGradients::summand(const Task& reduction, const Placing& placing) const {
  Tensors summands;
  for (const ParameterId p : held_by_several(reduction)) {
    const auto held = tensors_.parameters.find(p);
    if (held != tensors_.parameters.end() && held->second.grad().defined()) {
      summands.push_back(held->second.grad().contiguous());
      continue;
    }
    const TensorType& type = pipeline_.graph.parameters[p.index()].type;
    summands.push_back(at::zeros(
        type.sizes,
        at::TensorOptions().dtype(placed_type(type.dtype, placing)).device(placing.device)));
  }
  return summands;
}

void SharedGradients::take_sum(const Task& reduction, const Tensors& sums) {
  const std::vector<ParameterId> shared = held_by_several(reduction);
  for (std::size_t i = 0; i < shared.size(); ++i)
    if (tensors_.parameters.contains(shared[i])) put(shared[i], sums.at(i));
}

/// The norm of the gradients that no rank below this one holds; of a replica that has sums of
/// parts, of them.
at::Tensor SharedGradients::squared_norm(const ReplicaGradients& replicas) const {
  Tensors parts;
  for (const auto& [p, tensor] : tensors_.parameters) {
    if (!tensor.grad().defined() || held_by_other(p, rank_.index())) continue;
    std::ranges::copy(own_parts(p, tensor.grad(), replicas), std::back_inserter(parts));
  }
  if (parts.empty()) return at::zeros({}, at::kDouble);
  return at::stack(at::_foreach_norm(parts, 2, at::kDouble)).square().sum();
}

at::Tensor SharedGradients::unscale(float inverse, const ReplicaGradients& replicas) {
  Tensors gradients;
  for (const auto& [p, tensor] : tensors_.parameters)
    if (tensor.grad().defined())
      std::ranges::copy(own_parts(p, tensor.grad(), replicas), std::back_inserter(gradients));
  return pfeife::unscale(gradients, inverse);
}

double SharedGradients::norm(bool wanted, const at::Tensor& found, at::Device device,
                             const Tag& tag, Transport& transport,
                             ReplicaGradients& replicas) const {
  const at::NoGradGuard no_gradients;
  at::Tensor here = (wanted ? squared_norm(replicas) : at::zeros({}, at::kDouble)).to(device);
  if (found.defined())
    here = at::where(found.to(device).squeeze() > 0, at::full_like(here, INFINITY), here);
  if (transport.keeps_rows() && pipeline_.ranks() > 1) {
    transport.add_up(everyone(pipeline_.ranks()), tag, {here.reshape({1})});
    const auto sum = transport.sum(tag).at(0).item<double>();
    return std::sqrt(replicas.divides() ? replicas.sum(sum) : sum);
  }
  const auto own = here.item<double>();  // the host waits once
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    if (r != rank_.index()) transport.send(RankId{r}, tag, {at::scalar_tensor(own, at::kDouble)});
  double total = 0;
  for (std::size_t r = 0; r < pipeline_.ranks(); ++r)
    total +=
        r == rank_.index() ? own : transport.receive(RankId{r}, tag).tensors.at(0).item<double>();
  return std::sqrt(replicas.divides() ? replicas.sum(total) : total);
}

void SharedGradients::clip(double limit, double norm) {
  const double factor = limit / (norm + 1e-6);
  if (factor >= 1) return;
  const at::NoGradGuard no_gradients;
  Tensors own;
  for (auto& [p, tensor] : tensors_.parameters) {
    if (!tensor.grad().defined()) continue;
    if (pipeline_.replicas.count > 1 || held_by_other(p, pipeline_.ranks()))
      tensor.mutable_grad() = tensor.grad() * factor;  // the other rank may still read it
    else
      own.push_back(tensor.grad());
  }
  if (!own.empty()) at::_foreach_mul_(own, factor);
}

std::vector<RankId> everyone(std::size_t ranks) {
  std::vector<RankId> all;
  for (std::size_t r = 0; r < ranks; ++r) all.emplace_back(r);
  return all;
}

}  // namespace pfeife
