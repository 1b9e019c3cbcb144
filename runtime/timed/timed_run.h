// A pipeline whose compute and links are waits of given lengths, executed and measured by the same
// executor, transports and trace as one that computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"
#include "runtime/execute/executor.h"
#include "runtime/timed/timed_stage.h"
#include "runtime/timed/timed_transport.h"

namespace pfeife {

/// What is executed; equal on all ranks.
struct TimedPipeline {
  DependencyGraph tasks;  ///< of the lowered schedule, without queues
  Placement placement;
  StageCosts messages;                 ///< who exchanges how many bytes; its times are not read
  std::vector<Nanoseconds> durations;  ///< [task]
};

struct TimedMeasurement {
  std::vector<Nanoseconds> steps;     ///< time of each, by its trace
  std::vector<Nanoseconds> lateness;  ///< [step] mean over all waits of all ranks
  Trace trace;                        ///< of the step with the median time
  Nanoseconds median() const;
};

/// One rank: its waiting stages.
class TimedRank {
 public:
  /// References must outlive it.
  TimedRank(const TimedPipeline& pipeline, RankId rank, Transport& transport);

  /// Runs one step from `start` of now()'s clock on.
  std::vector<TaskRecord> step(std::uint64_t step, Nanoseconds start);
  /// The lateness of all waits so far.
  const Lateness& lateness() const { return lateness_; }
  void on_entering(std::function<void(const Cell&)> call) { entering_ = std::move(call); }

 private:
  void settle(const Tag& tag);
  std::pair<Nanoseconds, Nanoseconds> copy(const Action& action);
  Tensors contribution(const Task& reduction) const;

  const TimedPipeline& pipeline_;
  Lateness lateness_;
  TimedTransport transport_;
  std::map<Action, Nanoseconds> times_;
  std::map<Action, Nanoseconds> copied_;  ///< OFFLOAD and RELOAD of the step: their ends
  Nanoseconds engine_free_[2]{};          ///< out, back
  std::map<StageId, std::unique_ptr<TimedStage>> stages_;
  std::unique_ptr<RankExecutor> executor_;
  std::function<void(const Cell&)> entering_;
};

/// Runs some steps, which all ranks begin at the same moment. The result is rank 0's; empty
/// elsewhere.
TimedMeasurement measure_timed(const TimedPipeline& pipeline, RankId rank, int steps,
                               const std::function<void(const Cell&)>& entering,
                               Transport& transport);

/// For people: beside `estimated`, the step without contention.
std::string to_string(const TimedMeasurement& measurement, Nanoseconds estimated);

/// The length of every task by the text of its cell. ConfigError in `file`'s name if one is not
/// there.
std::vector<Nanoseconds> task_durations(const DependencyGraph& graph,
                                        const std::map<std::string, Nanoseconds>& by_cell,
                                        const std::string& file);

}  // namespace pfeife
