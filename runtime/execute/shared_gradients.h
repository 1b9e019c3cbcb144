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
  /// Scales all gradients so that their norm over the whole model is at most `limit`. Every rank
  /// must call it at the same `step`; a parameter that several ranks hold counts once.
  void clip(double limit, std::uint64_t step, Transport& transport, ReplicaGradients& replicas);

 private:
  bool uses(RankId rank, ParameterId parameter) const;
  std::vector<ParameterId> shared_in(const Task& reduction, RankId other) const;
  std::vector<ParameterId> held_by_several(const Task& reduction) const;
  void put(ParameterId parameter, at::Tensor sum);
  double squared_norm(const ReplicaGradients& replicas) const;

  const Pipeline& pipeline_;
  RankId rank_;
  RankTensors& tensors_;
  std::map<ParameterId, at::Tensor> earlier_;  ///< set aside
};

}  // namespace pfeife
