// Gradients across ranks: of parameters that several ranks hold (tied weights), and the norm of all
// gradients of the model.
#pragma once

#include <map>
#include <vector>

#include "runtime/execute/replica_gradients.h"
#include "runtime/model/pipeline.h"
#include "runtime/model/weights.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// One rank's view. References must outlive it.
class SharedGradients {
 public:
  SharedGradients(const Pipeline& pipeline, RankId rank, RankTensors& tensors)
      : pipeline_(pipeline), rank_(rank), tensors_(tensors) {}

  /// Before a step: what earlier steps left in the gradients of shared parameters is in every
  /// rank's copy, so it is set aside; only the gradients of this step are to be reduced.
  void begin_step();
  /// What this rank gives to a reduction's other party; in order of the parameters they share.
  Tensors part_for(const Task& reduction, RankId other) const;
  /// Adds the parts of all parties up in order of ranks: equal bits everywhere.
  void add_up(const Task& reduction, const std::map<RankId, Tensors>& parts);
  /// The same where the transport adds up: what this rank adds, in order of the parameters that
  /// several parties hold; and the sum.
  Tensors summand(const Task& reduction, const Placing& placing) const;
  void take_sum(const Task& reduction, const Tensors& sums);
  /// Multiplies this rank's gradients with `inverse`; of a replica that has sums of parts, them
  /// alone: another replica may still read the rest. The result is more than 0 if one of them is
  /// not finite; the host does not wait for it.
  at::Tensor unscale(float inverse, const ReplicaGradients& replicas);
  /// The norm of all gradients of the model, a parameter that several ranks hold counting once: one
  /// sum over all ranks, which must call it with the same `tag`. Infinite if `unscale` found
  /// something on any of them; `found` undefined: it was not called. 0 without `wanted` otherwise.
  double norm(bool wanted, const at::Tensor& found, at::Device device, const Tag& tag,
              Transport& transport, ReplicaGradients& replicas) const;
  /// Scales this rank's gradients by what makes the model's norm at most `limit`.
  void clip(double limit, double norm);

 private:
  /// Another rank with a number less than `below` holds the parameter, too.
  bool held_by_other(ParameterId parameter, std::size_t below) const;
  bool uses(RankId rank, ParameterId parameter) const;
  std::vector<ParameterId> shared_in(const Task& reduction, RankId other) const;
  std::vector<ParameterId> held_by_several(const Task& reduction) const;
  void put(ParameterId parameter, at::Tensor sum);
  at::Tensor squared_norm(const ReplicaGradients& replicas) const;

  const Pipeline& pipeline_;
  RankId rank_;
  RankTensors& tensors_;
  std::map<ParameterId, at::Tensor> earlier_;  ///< set aside
};

/// All ranks, as the parties of a sum.
std::vector<RankId> everyone(std::size_t ranks);

}  // namespace pfeife
