// One rank's part of a pipeline: its tensors and stages, step by step.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "runtime/execute/executor.h"
#include "runtime/execute/replica_gradients.h"
#include "runtime/execute/shared_gradients.h"
#include "runtime/model/graph_stage.h"
#include "runtime/model/loss.h"
#include "runtime/model/optimizer.h"
#include "runtime/model/pipeline.h"
#include "runtime/transport/group_transport.h"

namespace pfeife {

struct RankOptions {
  Placing placing;
  std::vector<bool> recompute;             ///< [stage]; empty = none
  std::vector<NodeRange> blocks = {};      ///< recomputed, each within a stage
  bool recompute_except_last = false;      ///< not of the microbatch that a stage runs forward last
  std::vector<double> offload = {};        ///< [stage] share that OFFLOAD copies; empty = all
  Bytes least_offloaded{4096};             ///< storages that are not worth a copy are smaller
  std::optional<at::ScalarType> autocast;  ///< the forward's products run in it
  /// step() answers with when each action ran. On an accelerator events say it, and the host waits
  /// for the device at the beginning and the end of the step; else step() returns when all is given
  /// to the device, and answers nothing.
  bool time_actions = true;
  bool defer_batch_norm = false;  ///< BatchStatistics
  std::uint64_t seed = 0;         ///< of dropout and the like
  OptimizerOptions optimizer;
  std::optional<LossScaleOptions> loss_scale = {};  ///< of steps that update
  bool update = true;  ///< false: gradients stay, optimizer steps do nothing
};

/// One rank: its tensors, stages and optimizer state. References must outlive it.
class RankPipeline {
 public:
  /// `rank` = its number among all ranks, which `transport` connects.
  RankPipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
               const RankOptions& options, RandomTurns& turns, Transport& transport);

  /// One step over the microbatches of `inputs`, whose number decides the learning rate; gradients
  /// are added to what is there. Records are those of RankOptions::time_actions. Every rank must
  /// get the same inputs; with replicas, every rank of one its share of them. ConfigError
  /// naming the input if one does not fit the model. RuntimeFault if the model names a loss weight
  /// and that of all microbatches is 0.
  std::vector<TaskRecord> step(const StepInputs& inputs);
  /// Only the forwards, in the order of the rank's row and in evaluation mode: no dropout, no
  /// statistics, no gradients. Any time, any number of microbatches (more than the row has begin it
  /// again); every rank must call it.
  void evaluate(const StepInputs& inputs);

  /// Losses of the last step by microbatch, if this rank makes them.
  std::vector<double> losses() const;
  /// Mean loss over the samples of the last step (or over what the model's loss weight counts), if
  /// this rank makes it; of a replica, what its samples give to the sum.
  std::optional<double> mean_loss() const;
  std::vector<double> evaluation_losses() const;
  /// The mean loss of the last evaluation, as mean_loss() has it for steps.
  std::optional<double> mean_evaluation_loss() const;
  RankTensors& tensors() { return tensors_; }
  OptimizerState& optimizer_state() { return optimizer_state_; }
  /// The optimizer's state is here for these elements of the parameters.
  std::vector<ParameterRange> updated_here(std::span<const ParameterId> parameters) const {
    return replicas_.own(parameters);
  }
  std::int64_t& updates() { return updates_; }
  std::size_t replica() const { return pipeline_.replica_of(number_); }
  /// nullptr without RankOptions::loss_scale.
  LossScale* loss_scale() { return factor_ ? &*factor_ : nullptr; }
  const std::vector<StageId>& stages() const { return own_; }
  GraphStage& stage(StageId s) { return *stages_.at(s); }
  const HostEngines& host_engines() const { return host_engines_; }
  /// Called before each cell of a step.
  void on_entering(std::function<void(const Cell&)> call) { entering_ = std::move(call); }

 private:
  using Stages = std::map<StageId, std::unique_ptr<GraphStage>>;
  Stages make_stages(bool training);
  RankWork work();
  bool runs_ahead() const { return !options_.time_actions && !options_.placing.device.is_cpu(); }
  void prepare(const StepInputs& inputs, Stages& stages);
  std::vector<double> shares_of(const StepInputs& inputs);
  const Graph& resized(std::int64_t samples);
  void update_stage(StageId stage);
  bool updates_at_once() const { return options_.optimizer.clip_norm <= 0 && !factor_; }
  /// Updates wait for all gradients of all ranks.
  bool settles() const { return options_.update && !updates_at_once(); }
  void settle_gradients(const Tag& tag);
  StageId maker_of(ValueId value) const;

  const Pipeline& pipeline_;
  RankId number_, rank_;  ///< among all; of the pipeline
  RankOptions options_;
  OptimizerOptions update_;  ///< with the learning rate of the step
  WeightSource source_;
  std::unique_ptr<GroupTransport> group_;  ///< with replicas, the ranks of this one
  Transport& transport_;                   ///< between the ranks of the pipeline
  RandomTurns& turns_;
  std::vector<StageId> own_;
  RankTensors tensors_;
  ReplicaGradients replicas_;
  SharedGradients shared_;
  Stages stages_, evaluation_stages_;
  HostEngines host_engines_;
  std::unique_ptr<RankExecutor> executor_;
  OptimizerState optimizer_state_;
  std::int64_t updates_ = 0;
  std::optional<LossScale> factor_;
  std::map<std::int64_t, Graph> resized_;  ///< the graph for other microbatch sizes
  std::optional<LossWeights> weights_;     ///< if the model names one and its loss is made here
  std::vector<double> shares_, evaluation_shares_;  ///< of the last microbatches
  std::vector<std::int64_t> samples_;               ///< of its microbatches
  std::uint64_t calls_ = 0;  ///< steps and evaluations: tells their messages apart
  std::function<void(const Cell&)> entering_;
  std::map<StageId, bool> updated_;
  bool settled_ = false;  ///< settle_gradients() was called in this step
};

}  // namespace pfeife
