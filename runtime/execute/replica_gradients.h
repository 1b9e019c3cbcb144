// What the replicas of a stage do together: gradients become their sum; with ZeRO 1 each replica
// updates a part of the parameters, and all get the updated parts of the others.
//
// Parameters go in buckets, flattened one after another: those of a stage, summed from the stage's
// last weight gradient on, and those that other ranks hold, too, summed when these have added
// theirs. A bucket has as many equal parts as there are replicas. Replica r adds up part r, in
// order of replicas, and hands the sum to the others: equal bits everywhere, and each rank sends
// twice the share (n - 1) / n of the bucket. A transport that keeps rows sums whole buckets.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "runtime/model/optimizer.h"
#include "runtime/model/pipeline.h"
#include "runtime/model/weights.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// One rank's view. References must outlive it.
class ReplicaGradients {
 public:
  /// `transport`: of all ranks.
  ReplicaGradients(const Pipeline& pipeline, RankId number, RankTensors& tensors, bool update,
                   Transport& transport);

  /// There are other replicas.
  bool active() const { return pipeline_.replicas.count > 1; }
  /// Each replica updates its part of the parameters only.
  bool divides() const { return active() && divides_; }

  /// Before a step. Without updates, what earlier steps left in the gradients is in every replica's
  /// copy, so it is set aside.
  void begin_step(std::uint64_t step);
  /// The stage's last weight gradient of the step is there: hands the stage's bucket over.
  void computed(StageId stage);
  /// Waits until the gradients of the stage's buckets are sums; with divides() those of own parts.
  /// Each bucket once a step: with the last of the rank's stages that holds its parameters.
  void finish(StageId stage);
  /// What this replica updates of the parameters.
  std::vector<ParameterRange> own(std::span<const ParameterId> parameters) const;
  /// With divides(), after the update of own parts: sends them and gets those of the others, once a
  /// step.
  void share_parameters(StageId stage);
  /// Buffers that the rank's stages write become those of replica 0.
  void take_buffers();
  /// The sum over replicas, everywhere in the same order.
  double sum(double value);

 private:
  struct Bucket {
    std::vector<ParameterId> parameters;
    std::uint32_t number = 0;
    bool handed_over = false, finished = false, updated = false;  ///< in this step
  };

  std::vector<ParameterRange> part(const Bucket& bucket, std::size_t replica) const;
  Tensors gradients(const Bucket& bucket, std::size_t replica) const;
  void hand_over(Bucket& bucket);
  void hand_over_in_row(const Bucket& bucket);
  void finish(Bucket& bucket);
  Tensors added_up(const Bucket& bucket);
  void put(const Bucket& bucket, std::size_t replica, const Tensors& sums);
  void exchange_parts(const Bucket& bucket);
  void share_in_row(const Bucket& bucket);
  void send_to_others(Tag tag, const Tensors& tensors);
  Tag tag(const Bucket& bucket, std::uint32_t phase) const;

  const Pipeline& pipeline_;
  RankTensors& tensors_;
  Transport& transport_;
  bool update_, divides_;
  std::size_t replica_;
  std::vector<RankId> copies_;                      ///< [replica] numbers of ranks like this one
  std::vector<ValueId> written_;                    ///< buffers
  std::map<StageId, std::vector<Bucket>> buckets_;  ///< own; then shared with other ranks
  std::uint64_t step_ = 0, sums_ = 0;
  std::map<ParameterId, at::Tensor> earlier_;  ///< set aside
};

}  // namespace pfeife
