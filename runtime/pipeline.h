// A plan made executable: what all ranks of a pipeline agree on, and one rank's part of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "planner/ir/dependency_graph.h"
#include "planner/ir/schedule.h"
#include "planner/ir/trace.h"
#include "runtime/executor.h"
#include "runtime/graph_stage.h"
#include "runtime/optimizer.h"
#include "runtime/transport.h"

namespace pfeife {

/// Equal on all ranks.
struct Pipeline {
  Graph graph;
  std::vector<NodeEffects> effects;
  GraphSplit split;
  StageGraph stages;
  Placement placement;
  std::size_t microbatches = 0;
  Schedule schedule;  ///< lowered
  DependencyGraph tasks;

  std::size_t ranks() const { return placement.ranks(); }
};

/// Cuts the graph and judges the schedule. A compute-only schedule is lowered here, a lowered one
/// taken as it is. ConfigError with the judge's reasons if it is not right for the cut graph.
Pipeline make_pipeline(Graph graph, std::span<const NodeId> cuts, const Schedule& schedule,
                       const Placement& placement);
/// The unsplit model on one rank, its microbatches one after another: what pipelines are compared
/// with.
Pipeline unsplit_pipeline(Graph graph, std::size_t microbatches);

struct RankOptions {
  Placing placing;
  std::vector<bool> recompute;  ///< [stage]; empty = none
  bool autocast_bf16 = false;
  std::uint64_t seed = 0;  ///< of dropout and the like
  OptimizerOptions optimizer;
  bool update = true;  ///< false: gradients stay, optimizer steps do nothing
};

/// One rank: its tensors, stages and optimizer state. References must outlive it.
class RankPipeline {
 public:
  RankPipeline(const Pipeline& pipeline, RankId rank, const WeightSource& source,
               const RankOptions& options, RandomTurns& turns, Transport& transport);

  /// One step over the microbatches of `inputs`; gradients are added to what is there. Every rank
  /// must get the same inputs. ConfigError naming the input if one does not fit the model.
  std::vector<TaskRecord> step(const StepInputs& inputs);
  /// Only the forwards, in evaluation mode: no dropout, no statistics, no gradients. Any time, any
  /// number of microbatches.
  void evaluate(const StepInputs& inputs);

  /// Losses of the last step by microbatch, if this rank makes them.
  std::vector<double> losses() const;
  /// Mean loss over the samples of the last step, if this rank makes it.
  std::optional<double> mean_loss() const;
  /// The same on every rank. Every rank must call it.
  double mean_loss_everywhere();
  /// A value of the graph, by its name there, is kept for every microbatch of later steps.
  void keep(const std::string& value);
  /// The kept value (or model output) of the microbatches of the last step, on rank `at`; empty on
  /// the others, and undefined for microbatches without samples. Every rank must call it.
  Tensors kept(const std::string& value, RankId at);
  std::vector<double> evaluation_losses() const;
  RankTensors& tensors() { return tensors_; }
  OptimizerState& optimizer_state() { return optimizer_state_; }
  std::int64_t& updates() { return updates_; }
  const std::vector<StageId>& stages() const { return own_; }
  GraphStage& stage(StageId s) { return *stages_.at(s); }
  /// Called before each cell of a step.
  void on_entering(std::function<void(const Cell&)> call) { entering_ = std::move(call); }

 private:
  void prepare(const StepInputs& inputs, std::map<StageId, std::unique_ptr<GraphStage>>& stages);
  const Graph& resized(std::int64_t samples);
  Tensors contribution(const Task& reduction, RankId other);
  void reduce(const Task& reduction, const std::map<RankId, Tensors>& parts);
  void update_stage(StageId stage);
  void clip_gradients();
  void set_aside_shared();
  ValueId value_named(const std::string& name) const;
  StageId maker_of(ValueId value) const;
  std::vector<ParameterId> shared_in(const Task& reduction, RankId other) const;
  bool uses(RankId rank, ParameterId parameter) const;

  const Pipeline& pipeline_;
  RankId rank_;
  RankOptions options_;
  WeightSource source_;
  Transport& transport_;
  RandomTurns& turns_;
  RankTensors tensors_;
  std::vector<StageId> own_;
  std::map<StageId, std::unique_ptr<GraphStage>> stages_, evaluation_stages_;
  std::unique_ptr<RankExecutor> executor_;
  OptimizerState optimizer_state_;
  std::int64_t updates_ = 0;
  std::map<std::int64_t, Graph> resized_;  ///< the graph for other microbatch sizes
  std::vector<double> loss_scale_;         ///< of the last step
  std::uint64_t calls_ = 0;                ///< steps and evaluations: tells their messages apart
  std::function<void(const Cell&)> entering_;
  std::map<StageId, bool> updated_;
  /// Of parameters that other ranks hold, too: gradients of earlier steps, already reduced.
  std::map<ParameterId, at::Tensor> earlier_;
  std::map<StageId, std::vector<ValueId>> kept_;
};

/// Runs `body` for every rank on a thread of its own, over an in-process transport. The first
/// failure stops all and is thrown.
void run_ranks(std::size_t ranks, const std::function<void(RankId, Transport&)>& body);

}  // namespace pfeife
