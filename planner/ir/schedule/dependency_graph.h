// THE statement of what waits for what in a lowered schedule. Estimator, simulator and runtime run
// it; none adds rules.
//
// Tasks: one per compute cell (F, B, I, W, overlap), per optimizer step, per transfer (SEND and its
// RECV are one task with two parties), per copy (OFFLOAD, RELOAD), per group of reductions (one
// task, a party for each REDUCE_GRAD), two per reduction of a stage's replicas (what may run beside
// the stage's last backward, and the rest), and one for all REDUCE_NORMs. Edges, in words:
//  - rank order: a compute task or optimizer step waits for the one before it on its rank;
//  - data: a stage's F waits for the F of every stage that feeds it, B and I for those of the
//    stages it feeds (through the transfer, or directly on the same rank), a backward for its
//    forward, W for its I; of a microbatch in slices, F for the F of the slice before it in its
//    stage, B and I for the B or I of the slice after it;
//  - transfer: waits for the compute that made the value; then, by Semantics::queues, for the
//    transfer before it in each queue it is in. Queue order = order of SEND and RECV in the rows;
//  - copy: OFFLOAD waits for its F, RELOAD for its OFFLOAD, B or I for its RELOAD. A copy waits for
//    what holds its rank before it in the row, and for the copy before it on its engine: each way
//    has one, unless the stage graph says that both share one. It never holds its rank. (Engines
//    show a RELOAD as late as these rules allow without anything else starting later:
//    start_reloads_late);
//  - blocking: SEND, RECV and a reduction (a rank's last REDUCE_GRAD of it) stand in rank order;
//  - a reduction waits for the last weight gradient of each of its stages, and holds no rank unless
//    it blocks; the optimizer step of a stage waits for the reduction that touches it;
//  - a reduction of a stage's replicas never holds its rank. Its first part begins with the last
//    backward (B or I) of the stage, its rest when the last weight gradient and the first part are
//    done; the first part of the next stage of the rank waits for that rest (one link). An
//    optimizer step waits for the reductions of all stages of its rank that have no more gradients
//    to make;
//  - the norm waits for all weight gradients and reductions, and every optimizer step for it;
//  - an output layer that all ranks share: each S waits for the BROADCAST_F of its microbatch,
//  which
//    waits for the F of the last stage; each T for the REDUCE_S, which waits for all S; B or I of
//    the last stage for the REDUCE_S, or for the REDUCE_T, which waits for all T
//    (StageGraph::head_barriers). These collectives hold no rank and do not queue.
// Edges that rank order already implies are left out. A cycle is a deadlock and is data, not an
// error: see TaskOrder::blocked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

enum class EdgeKind : std::uint8_t { RankOrder, Data, Queue };

/// A distinct duration; tasks that last equally long by construction share one.
struct DurationSlot {
  TaskKind kind = TaskKind::Compute;
  std::vector<Action>
      parts;  ///< several for an overlap; the SEND for a transfer, the REDUCE_NORM, the REDUCE_GRAD
              ///< of replicas, with a B behind it for what runs beside that. Microbatch left empty,
              ///< but of a B, I or copy that takes a time of its own (StageGraph::last_apart), and
              ///< of slices, which are those of microbatch 0, and of microbatches that differ,
              ///< for which the first of their kind stands (StageGraph::kind_of)
  std::vector<StageId> stages;  ///< of a reduction of gradients
  friend bool operator==(const DurationSlot&, const DurationSlot&) = default;
};

struct Task {
  TaskKind kind = TaskKind::Compute;
  std::uint32_t slot = 0;      ///< index into DependencyGraph::slots
  RankId rank;                 ///< where it runs; sender of a transfer; first party of a reduction
  RankId peer;                 ///< receiver of a transfer; = rank otherwise
  std::uint32_t position = 0;  ///< cell in the rank's row (of the SEND; of the first REDUCE_GRAD)
  std::uint32_t peer_position = 0;  ///< cell of the RECV in the peer's row; = position otherwise
  Cell cell;                        ///< what the row says there
  std::vector<RankId> parties;      ///< of a reduction, sorted
  friend bool operator==(const Task&, const Task&) = default;
};

/// The reduction of all REDUCE_NORMs.
inline bool is_norm(const Task& task) {
  const auto* action = std::get_if<Action>(&task.cell);
  return action != nullptr && action->op == Op::ReduceNorm;
}

struct Edge {
  TaskId from;
  EdgeKind kind = EdgeKind::Data;
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct DependencyGraph {
  std::size_t ranks = 0;
  Semantics semantics;
  std::vector<DurationSlot> slots;
  std::vector<Task>
      tasks;  ///< rank by rank in row order, then transfers by sender's row, reductions, copies
  std::vector<std::uint32_t>
      edge_begin;  ///< [task + 1]: edges into a task are edges[edge_begin[t], edge_begin[t+1])
  std::vector<Edge> edges;

  std::size_t size() const { return tasks.size(); }
  std::span<const Edge> edges_into(TaskId t) const {
    return {edges.data() + edge_begin[t.index()], edges.data() + edge_begin[t.index() + 1]};
  }
  friend bool operator==(const DependencyGraph&, const DependencyGraph&) = default;
};

/// Builds the graph of a lowered schedule. `schedule` must be free of violations of matching and
/// placement (validate); it may deadlock. Cost is linear but for a sort of the actions.
DependencyGraph dependencies(const Schedule& lowered, const StageGraph& stages,
                             const Placement& placement, const Semantics& semantics);

/// A topological order of the tasks that can run (first ready first, ties by task number), and
/// those that never can.
struct TaskOrder {
  std::vector<TaskId> order;
  std::vector<TaskId> blocked;
};
TaskOrder task_order(const DependencyGraph& graph);

/// What an engine answers if some tasks can never run: the order of the schedule is a deadlock.
struct Deadlock {
  std::vector<TaskId> blocked;  ///< sorted
  friend bool operator==(const Deadlock&, const Deadlock&) = default;
};

/// The duration of every slot under the given costs, in slot order.
std::vector<Nanoseconds> slot_durations(std::span<const DurationSlot> slots,
                                        const StageCosts& costs);
/// Bytes of a transfer slot (0 for the others).
Bytes slot_bytes(const DurationSlot& slot, const StageCosts& costs);

}  // namespace pfeife
