#include "planner/ir/schedule/dependency_tasks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/action_inputs.h"

namespace pfeife {
namespace {

/// What of an action's microbatch its duration depends on: the slice, as one of microbatch 0, or
/// the kind, as the first microbatch of it.
class DurationKinds {
 public:
  explicit DurationKinds(const std::vector<std::uint32_t>& kind_of) : kind_of_(kind_of) {
    for (std::size_t m = 0; m < kind_of.size(); ++m)
      first_.try_emplace(kind_of[m], MicrobatchId{m});
  }
  std::optional<MicrobatchId> first_alike(const Action& action) const {
    if (!action.microbatch) return std::nullopt;
    const MicrobatchId m = *action.microbatch;
    if (m.slices > 1) return MicrobatchId{m.slice(), m.slices};
    if (kind_of_.empty()) return std::nullopt;
    PFEIFE_CHECK(m.index() < kind_of_.size(), to_string(action), " of ", kind_of_.size());
    return first_.at(kind_of_[m.index()]);
  }

 private:
  const std::vector<std::uint32_t>& kind_of_;
  std::map<std::uint32_t, MicrobatchId> first_;
};

/// Numbers distinct durations in the order in which they are first asked for.
class SlotTable {
 public:
  /// `last`: [stage] the microbatch whose B and I take a time of their own; empty = none.
  SlotTable(std::vector<DurationSlot>& slots, std::size_t stages, const DurationKinds& kinds,
            std::vector<MicrobatchId> last)
      : slots_(slots),
        kinds_(kinds),
        last_(std::move(last)),
        single_(stages * kSingleOps, kNoTask) {}

  std::uint32_t number(DurationSlot wanted) {
    const auto key = std::tuple{wanted.kind, wanted.parts, wanted.stages};
    const auto [at, added] = number_.try_emplace(key, static_cast<std::uint32_t>(slots_.size()));
    if (added) slots_.push_back(std::move(wanted));
    return at->second;
  }
  std::uint32_t number(const Cell& cell, TaskKind kind) {
    DurationSlot wanted{kind, {}, {}};
    for_each_action(cell, [&](Action action) {
      if (!is_apart(action)) action.microbatch = kinds_.first_alike(action);
      wanted.parts.push_back(action);
    });
    if (wanted.parts.size() == 1 && kind == TaskKind::Compute &&
        !wanted.parts[0].microbatch) {  // the common case without the map
      const Action& only = wanted.parts[0];
      std::uint32_t& known =
          single_[only.stage.index() * kSingleOps + static_cast<std::size_t>(only.op)];
      if (known == kNoTask) known = number(std::move(wanted));
      return known;
    }
    return number(std::move(wanted));
  }

 private:
  static constexpr std::size_t kSingleOps = 6;  // F, B, I, W, S, T

  bool is_apart(const Action& action) const {
    return !last_.empty() && (makes_input_gradient(action.op) || is_copy(action.op)) &&
           action.microbatch == last_[action.stage.index()];
  }

  std::vector<DurationSlot>& slots_;
  const DurationKinds& kinds_;
  std::vector<MicrobatchId> last_;
  std::map<std::tuple<TaskKind, std::vector<Action>, std::vector<StageId>>, std::uint32_t> number_;
  std::vector<std::uint32_t> single_;  // [stage * 6 + op] of compute cells with one action
};

class TaskBuilder {
 public:
  TaskBuilder(const Schedule& schedule, const StageGraph& stages, const Placement& placement)
      : schedule_(schedule),
        stages_(stages),
        placement_(placement),
        kinds_(stages.kind_of),
        slots_(built_.slots, stages.stages, kinds_,
               stages.last_apart ? last_forwards(schedule, stages.stages)
                                 : std::vector<MicrobatchId>{}) {
    built_.microbatches = microbatch_count(schedule);
    PFEIFE_CHECK(placement.stages() == stages.stages, placement.stages(), " placed, ",
                 stages.stages);
    built_.forward.assign(stages.stages * built_.microbatches, kNoTask);
    built_.backward = built_.forward;
    built_.last_gradient.assign(stages.stages, kNoTask);
    last_microbatch_.resize(stages.stages);
    for (auto& sent : built_.transfer)
      sent.assign(stages.edges.size() * built_.microbatches, kNoTask);
    index_components();
  }

  DependencyTasks build() {
    add_row_tasks();
    add_transfers();
    add_reductions();
    if (stages_.replicas) add_replicas();
    add_norm();
    add_head_collectives();
    add_copies();
    return std::move(built_);
  }

 private:
  /// Stages linked by ties reduce together: component_[stage] = number of the group, or kNoTask.
  void index_components() {
    component_.assign(stages_.stages, kNoTask);
    for (std::uint32_t group = 0; group < stages_.tied.size(); ++group)
      for (const StageId s : stages_.tied[group]) {
        const std::uint32_t old = component_[s.index()];
        if (old != kNoTask) std::replace(component_.begin(), component_.end(), old, group);
        component_[s.index()] = group;
      }
  }

  std::size_t edge_of(StageId from, StageId to) const {
    const auto at =
        std::lower_bound(stages_.edges.begin(), stages_.edges.end(), std::tuple{from, to},
                         [](const StageGraph::Edge& e, const auto& key) {
                           return std::tuple{e.from, e.to} < key;
                         });
    PFEIFE_CHECK(at != stages_.edges.end() && at->from == from && at->to == to,
                 "no value goes from stage ", from.value, " to stage ", to.value);
    return static_cast<std::size_t>(at - stages_.edges.begin());
  }
  /// The StageGraph edge a transfer belongs to: values travel from -> to, gradients to -> from.
  std::size_t edge_of(const Action& send) const {
    return send.direction == Direction::Forward ? edge_of(send.stage, *send.peer)
                                                : edge_of(*send.peer, send.stage);
  }

  void add_row_tasks() {
    for (std::size_t r = 0; r < schedule_.ranks(); ++r) {
      const RankId rank{r};
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const Cell& cell = schedule_.rows[r][p];
        const std::optional<TaskKind> kind = kind_of_rank_task(cell);
        if (!kind) continue;
        const auto task = static_cast<std::uint32_t>(built_.tasks.size());
        built_.tasks.push_back({*kind, slots_.number(cell, *kind), rank, rank, p, p, cell, {}});
        for_each_action(cell, [&](const Action& action) { note_compute(action, task); });
      }
    }
  }
  void note_compute(const Action& action, std::uint32_t task) {
    if (const auto way = operation(action.op).passes)
      (*way == Direction::Forward
           ? built_.forward
           : built_.backward)[built_.place(action.stage, *action.microbatch)] = task;
    if (!makes_weight_gradient(action.op)) return;
    built_.last_gradient[action.stage.index()] = task;
    last_microbatch_[action.stage.index()] = *action.microbatch;
  }
  /// The task that the rank of a cell runs by itself; transfers and reductions have several
  /// parties.
  static std::optional<TaskKind> kind_of_rank_task(const Cell& cell) {
    if (std::holds_alternative<Overlap>(cell)) return TaskKind::Compute;
    const auto* action = std::get_if<Action>(&cell);
    const std::optional<TaskKind> kind = action ? operation(action->op).task : std::nullopt;
    return kind == TaskKind::Compute || kind == TaskKind::Optimizer ? kind : std::nullopt;
  }

  void add_transfers() {
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p)
        if (const auto* a = std::get_if<Action>(&schedule_.rows[r][p]); a && a->op == Op::Send)
          add_transfer(*a, RankId{r}, p);
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p)
        if (const auto* a = std::get_if<Action>(&schedule_.rows[r][p]); a && a->op == Op::Recv)
          match_recv(*a, RankId{r}, p);
    for (const Task& task : built_.tasks)
      PFEIFE_CHECK(task.peer_position != kNoTask, to_string(task.cell), " has no RECV");
  }
  void add_transfer(const Action& action, RankId rank, std::uint32_t position) {
    const std::size_t edge = edge_of(action);
    Action pattern = action;
    pattern.microbatch = kinds_.first_alike(action);
    std::uint32_t& known = transfer_slot_[{edge, pattern.microbatch, action.direction}];
    if (known == 0) known = slots_.number({TaskKind::Transfer, {pattern}, {}}) + 1;
    std::uint32_t& task = transfer_of(edge, action);
    PFEIFE_CHECK(task == kNoTask, to_string(action), " sent twice");
    task = static_cast<std::uint32_t>(built_.tasks.size());
    built_.tasks.push_back({TaskKind::Transfer,
                            known - 1,
                            rank,
                            placement_.rank(*action.peer),
                            position,
                            kNoTask,
                            Cell{action},
                            {}});
  }
  void match_recv(const Action& action, RankId rank, std::uint32_t position) {
    const Action sent = send(*action.peer, action.stage, *action.microbatch, action.direction);
    const std::uint32_t task = transfer_of(edge_of(sent), sent);
    PFEIFE_CHECK(task != kNoTask, to_string(action), " has no SEND");
    Task& transfer = built_.tasks[task];
    PFEIFE_CHECK(transfer.peer == rank && transfer.peer_position == kNoTask, to_string(action));
    transfer.peer_position = position;
  }
  std::uint32_t& transfer_of(std::size_t edge, const Action& send) {
    return built_.transfer[static_cast<std::size_t>(send.direction)]
                          [edge * built_.microbatches + send.microbatch->index()];
  }

  void add_reductions() {
    std::map<std::uint32_t, std::uint32_t> task_of;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const auto* action = std::get_if<Action>(&schedule_.rows[r][p]);
        if (!action || action->op != Op::ReduceGrad) continue;
        const std::uint32_t group = component_[action->stage.index()];
        if (group == kNoTask) continue;
        const RankId rank{r};
        const auto [at, added] =
            task_of.try_emplace(group, static_cast<std::uint32_t>(built_.tasks.size()));
        if (added)
          built_.tasks.push_back({TaskKind::Reduction,
                                  slots_.number({TaskKind::Reduction, {}, stages_in(group)}),
                                  rank,
                                  rank,
                                  p,
                                  p,
                                  Cell{*action},
                                  {}});
        auto& parties = built_.tasks[at->second].parties;
        if (parties.empty() || parties.back() != rank) parties.push_back(rank);
        built_.reductions.push_back({at->second, rank, p, action->stage});
      }
    for (std::size_t s = 0; s < stages_.stages; ++s)
      built_.reduction.push_back(component_[s] == kNoTask || !task_of.contains(component_[s])
                                     ? kNoTask
                                     : task_of[component_[s]]);
  }
  void add_replicas() {
    built_.replicas.resize(stages_.stages);
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const auto* action = std::get_if<Action>(&schedule_.rows[r][p]);
        if (!action || action->op != Op::ReduceGrad) continue;
        const std::size_t s = action->stage.index();
        const RankId rank{r};
        const auto add = [&](std::vector<Action> parts) {
          const std::uint32_t slot = slots_.number({TaskKind::Reduction, std::move(parts), {}});
          built_.tasks.push_back(
              {TaskKind::Reduction, slot, rank, rank, p, p, Cell{*action}, {rank}});
          return static_cast<std::uint32_t>(built_.tasks.size() - 1);
        };
        DependencyTasks::Replicas& of = built_.replicas[s];
        PFEIFE_CHECK(of.behind == kNoTask && built_.last_gradient[s] != kNoTask,
                     to_string(*action));
        of.beside = add({*action, stage_action(Op::Backward, action->stage)});
        of.behind = add({*action});
        of.with = built_.backward[built_.place(action->stage, last_microbatch_[s])];
      }
  }
  void add_norm() {
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const auto* action = std::get_if<Action>(&schedule_.rows[r][p]);
        if (!action || action->op != Op::ReduceNorm) continue;
        const RankId rank{r};
        if (built_.norm == kNoTask) {
          built_.norm = static_cast<std::uint32_t>(built_.tasks.size());
          const std::uint32_t slot = slots_.number({TaskKind::Reduction, {*action}, {}});
          built_.tasks.push_back({TaskKind::Reduction, slot, rank, rank, p, p, Cell{*action}, {}});
        }
        built_.tasks[built_.norm].parties.push_back(rank);
        built_.reductions.push_back({built_.norm, rank, p, action->stage});
      }
  }
  /// One task for each collective of each microbatch.
  void add_head_collectives() {
    if (stages_.head_barriers == 0) return;
    for (auto& tasks : built_.collective) tasks.assign(built_.microbatches, kNoTask);
    const std::size_t computed = built_.tasks.size();
    for (std::uint32_t part = 0; part < computed; ++part)
      if (built_.tasks[part].kind == TaskKind::Compute)
        for_each_action(Cell{built_.tasks[part].cell}, [&](const Action& action) {
          if (const auto op = collective_made(action, stages_))
            built_.collective_parts.emplace_back(part, collective_task(*op, action));
        });
  }
  std::uint32_t collective_task(Op op, const Action& action) {
    std::uint32_t& task = built_.collective[collective_number(op)][action.microbatch->index()];
    if (task != kNoTask) return task;
    task = static_cast<std::uint32_t>(built_.tasks.size());
    Action collective = stage_action(op, action.stage);
    const std::uint32_t slot = slots_.number({TaskKind::Reduction, {collective}, {}});
    collective.microbatch = action.microbatch;
    constexpr std::uint32_t kNoCell = 0;  // it stands in no row
    const RankId first{0};
    built_.tasks.push_back(
        {TaskKind::Reduction, slot, first, first, kNoCell, kNoCell, Cell{collective}, all_ranks()});
    return task;
  }
  std::vector<RankId> all_ranks() const {
    std::vector<RankId> ranks;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r) ranks.emplace_back(r);
    return ranks;
  }
  void add_copies() {
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const Cell& cell = schedule_.rows[r][p];
        const auto* action = std::get_if<Action>(&cell);
        if (!action || !is_copy(action->op)) continue;
        auto& copies = action->op == Op::Offload ? built_.offload : built_.reload;
        copies.resize(built_.forward.size(), kNoTask);
        std::uint32_t& task = copies[built_.place(action->stage, *action->microbatch)];
        PFEIFE_CHECK(task == kNoTask, to_string(*action), " is there twice");
        task = static_cast<std::uint32_t>(built_.tasks.size());
        const RankId rank{r};
        built_.tasks.push_back(
            {TaskKind::Copy, slots_.number(cell, TaskKind::Copy), rank, rank, p, p, cell, {}});
      }
    built_.offload.resize(built_.reload.size(), kNoTask);
  }
  std::vector<StageId> stages_in(std::uint32_t group) const {
    std::vector<StageId> found;
    for (std::size_t s = 0; s < component_.size(); ++s)
      if (component_[s] == group) found.emplace_back(static_cast<std::int64_t>(s));
    return found;
  }

  const Schedule& schedule_;
  const StageGraph& stages_;
  const Placement& placement_;
  DependencyTasks built_;
  const DurationKinds kinds_;
  SlotTable slots_;
  std::vector<std::uint32_t> component_;       // [stage]
  std::vector<MicrobatchId> last_microbatch_;  // [stage] of its last weight gradient
  std::map<std::tuple<std::size_t, std::optional<MicrobatchId>, Direction>, std::uint32_t>
      transfer_slot_;  // + 1
};

}  // namespace

DependencyTasks dependency_tasks(const Schedule& lowered, const StageGraph& stages,
                                 const Placement& placement) {
  return TaskBuilder(lowered, stages, placement).build();
}

}  // namespace pfeife
