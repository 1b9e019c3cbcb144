// Runs one rank's part of a DependencyGraph, action by action, and says when each ran.
//
// There is no schedule logic here: order and waits are those of the graph. A transfer is handed to
// the transport as soon as its value exists and never holds the rank; a reduction is handed over
// when the rank's part of it is ready and waited for only by what waits for it in the graph.
// A transport that keeps rows gets each SEND, RECV and reduction where the rank's row has it, not
// earlier: whatever order it adds then only makes a rank wait for earlier cells of its own row.
// Graphs with queue edges or blocking transfers are not executed: order and waits of queues are the
// transport's.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/trace/trace.h"
#include "runtime/model/stage.h"
#include "runtime/transport/device_clock.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// When a rank took part in a task. A transfer is recorded by its receiver; by events, its start by
/// its sender and its end, where the receiver's stream has it, by its receiver.
struct TaskRecord {
  TaskId task;
  Nanoseconds start{0}, end{0};  ///< reduction: own part handed over; all parts here
};
/// The other end of a record that says only one.
constexpr Nanoseconds kUnknownStart = Nanoseconds::min(), kUnknownEnd = Nanoseconds::max();

/// What a rank executes. References must outlive the executor.
struct RankWork {
  std::map<StageId, Stage*> stages;
  /// The rank's part of a reduction that goes to another of its parties.
  std::function<Tensors(const Task&, RankId other)> contribution;
  /// All parts of the other parties are there.
  std::function<void(const Task&, const std::map<RankId, Tensors>&)> reduce;
  /// For transports that keep rows: the rank's lowered row, samples of a microbatch, what the rank
  /// adds to a reduction, and the sum.
  std::vector<Cell> row = {};
  std::function<std::int64_t(MicrobatchId)> samples = {};
  std::function<Tensors(const Task&)> summand = {};
  std::function<void(const Task&, Tensors)> take_sum = {};
  /// Gives OFFLOAD or RELOAD to what copies; when the copy begins and ends, as `mark` says it.
  std::function<std::pair<Nanoseconds, Nanoseconds>(const Action&,
                                                    const std::function<Nanoseconds()>& mark)>
      copy = {};
  /// What the rank does from now on waits for a RELOAD.
  std::function<void(const Action&)> await_reload = {};
  std::function<void(StageId)> optimizer_step;
  /// The rank's part in REDUCE_NORM, with a tag for its messages: all its gradients are there.
  std::function<void(const Tag&)> settle = {};
  /// After the last weight gradient of a stage; before each optimizer step, outside its time.
  std::function<void(StageId)> gradients_made = {}, before_step = {};
  /// This rank's number among all, for messages; empty = as in the graph.
  std::optional<RankId> number = {};
  /// An accelerator whose events say when actions ran; they are read at the end of the step. Empty:
  /// the host's clock says it, which is right where work is done when the call returns.
  std::optional<at::Device> timed_on = {};
  /// Called before each cell: for messages about failures.
  std::function<void(const Cell&)> entering;
};

class RankExecutor {
 public:
  /// The graph must be that of a schedule which validate() accepts for the stages.
  RankExecutor(const DependencyGraph& graph, const Placement& placement, RankId rank, RankWork work,
               Transport& transport);

  /// Runs the rank's part of one step. Any failure stops the transport, with rank and action, and
  /// is thrown as RuntimeFault.
  std::vector<TaskRecord> run(std::uint64_t step);

 private:
  struct Route {  // a message between two stages for one microbatch
    StageId from, to;
    MicrobatchId microbatch;
    Direction direction;
    friend auto operator<=>(const Route&, const Route&) = default;
  };

  enum class Doing { Run, Send, Expect, Reduce, Settle };
  struct Entry {  // of the row
    std::uint32_t position = 0;
    Doing doing = Doing::Run;
    TaskId task;
  };

  void place_norm();
  bool reduces_here(const Task& task) const {
    return task.kind == TaskKind::Reduction && !is_norm(task) &&
           std::ranges::binary_search(task.parties, rank_);
  }
  void order_with_row();
  void order_without_row();
  void perform(const Entry& entry);
  void run_task(TaskId task);
  void run_copy(TaskId task);
  void receive_for(TaskId task);
  PerStage receive_from(const std::vector<StageId>& others, const Action& action,
                        Direction direction);
  PerStage perform(const Action& action, const PerStage& in);
  Nanoseconds mark() { return clock_ ? clock_->mark() : now(); }
  void begin_clock();
  void read_clock();
  Form form_of(const Action& sent) const;
  void hand_on(TaskId task, const Action& action, PerStage out);
  void contribute(TaskId reduction);
  void finish_reduction(TaskId reduction);
  void finish_reductions();
  bool is_mine(StageId stage) const { return placement_.rank(stage) == rank_; }

  const DependencyGraph& graph_;
  const Placement& placement_;
  RankId rank_;
  RankWork work_;
  Transport& transport_;
  std::optional<DeviceClock> clock_;
  std::pair<Nanoseconds, Nanoseconds> clock_start_;  ///< a mark, and the host's time of it
  std::vector<Entry> order_;  ///< own tasks; with rows, also transfers and reductions
  std::map<TaskId, std::vector<TaskId>> sends_;      ///< own task -> transfers of what it makes
  std::map<TaskId, std::vector<TaskId>> completes_;  ///< own task -> reductions it readies
  std::vector<TaskId> at_start_;                     ///< reductions that wait for nothing here
  std::map<StageId, TaskId> last_gradient_;          ///< of own stages

  std::uint64_t step_ = 0;
  /// Received, made by another stage of this rank, or made here for a SEND to come.
  std::map<Route, Tensors> inbox_;
  std::map<TaskId, Nanoseconds> contributed_;  ///< reductions under way
  std::vector<TaskRecord> records_;
};

/// The trace of a step from the records of all ranks, whose clocks must agree.
Trace measured_trace(const DependencyGraph& graph,
                     std::span<const std::vector<TaskRecord>> records);

/// What ranks on accelerators may be apart in their records: each brings its device's time and the
/// host's together at the beginning of a step.
constexpr Nanoseconds kDeviceClocksDiffer = std::chrono::milliseconds(1);

/// The first edge of the graph that the trace breaks by more than `clocks_differ`, as a sentence;
/// "" if there is none.
std::string broken_edge(const DependencyGraph& graph, const Trace& trace,
                        Nanoseconds clocks_differ = Nanoseconds{0});

}  // namespace pfeife
