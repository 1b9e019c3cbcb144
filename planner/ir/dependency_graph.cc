#include "planner/ir/dependency_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/ir/action_time.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Where the actions of a schedule are, by what they do; filled in one pass over the rows.
class Builder {
 public:
  Builder(const Schedule& schedule, const StageGraph& stages, const Placement& placement,
          const Semantics& semantics)
      : schedule_(schedule), stages_(stages), placement_(placement) {
    graph_.ranks = schedule.ranks();
    graph_.semantics = semantics;
    microbatches_ = microbatch_count(schedule);
    PFEIFE_CHECK(placement.stages() == stages.stages, placement.stages(), " placed, ",
                 stages.stages);
    index_edges();
    index_components();
  }

  DependencyGraph build() {
    add_row_tasks();
    add_transfers();
    add_reductions();
    connect_rank_order();
    connect_data();
    connect_queues();
    pack_edges();
    return std::move(graph_);
  }

 private:
  using Key = std::size_t;

  // --- indices
  // ---------------------------------------------------------------------------------------------------
  void index_edges() {
    const std::size_t count = stages_.stages;
    into_.resize(count);
    out_of_.resize(count);
    for (std::size_t e = 0; e < stages_.edges.size(); ++e) {
      into_[stages_.edges[e].to.index()].push_back(e);
      out_of_[stages_.edges[e].from.index()].push_back(e);
    }
    forward_.assign(count * microbatches_, kNone);
    backward_.assign(count * microbatches_, kNone);
    for (auto& sent : transfer_) sent.assign(stages_.edges.size() * microbatches_, kNone);
  }

  /// Stages linked by ties reduce together: component_[stage] = number of the group, or kNone.
  void index_components() {
    component_.assign(stages_.stages, kNone);
    for (std::uint32_t group = 0; group < stages_.tied.size(); ++group) {
      std::uint32_t name = group;
      for (const StageId s : stages_.tied[group]) name = std::min(name, component_[s.index()]);
      for (const StageId s : stages_.tied[group]) {
        const std::uint32_t old = component_[s.index()];
        if (old != kNone && old != name)
          std::replace(component_.begin(), component_.end(), old, name);
        component_[s.index()] = name;
      }
    }
  }

  Key cell_key(StageId stage, MicrobatchId m) const {
    return stage.index() * microbatches_ + m.index();
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

  std::uint32_t slot(DurationSlot wanted) {
    const auto key = std::tuple{wanted.kind, wanted.parts, wanted.stages};
    const auto [at, added] =
        slot_of_.try_emplace(key, static_cast<std::uint32_t>(graph_.slots.size()));
    if (added) graph_.slots.push_back(std::move(wanted));
    return at->second;
  }
  std::uint32_t cell_slot(const Cell& cell, TaskKind kind) {
    DurationSlot wanted{kind, {}, {}};
    for_each_action(cell, [&](Action action) {
      action.microbatch.reset();
      wanted.parts.push_back(action);
    });
    if (wanted.parts.size() == 1 && kind == TaskKind::Compute) {  // the common case without the map
      const Action& only = wanted.parts[0];
      const std::size_t at = only.stage.index() * 4 + static_cast<std::size_t>(only.op);
      if (quick_.size() <= at) quick_.resize(stages_.stages * 4 + 4, kNone);
      if (quick_[at] == kNone) quick_[at] = slot(std::move(wanted));
      return quick_[at];
    }
    return slot(std::move(wanted));
  }

  // --- tasks
  // -----------------------------------------------------------------------------------------------------
  void add_row_tasks() {
    for (std::size_t r = 0; r < schedule_.ranks(); ++r) {
      const RankId rank{static_cast<std::int64_t>(r)};
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const Cell& cell = schedule_.rows[r][p];
        const TaskKind kind = kind_of(cell);
        if (kind != TaskKind::Compute && kind != TaskKind::Optimizer) continue;
        const auto task = static_cast<std::uint32_t>(graph_.tasks.size());
        graph_.tasks.push_back({kind, cell_slot(cell, kind), rank, rank, p, p, cell, {}});
        for_each_action(cell, [&](const Action& action) { note_compute(action, task); });
      }
    }
  }
  void note_compute(const Action& action, std::uint32_t task) {
    if (action.op == Op::Forward) forward_[cell_key(action.stage, *action.microbatch)] = task;
    if (action.op == Op::Backward || action.op == Op::BackwardInput)
      backward_[cell_key(action.stage, *action.microbatch)] = task;
  }
  /// What task a cell makes; Reduction stands for "none here" (idle, RECV, unshard, reshard,
  /// reductions).
  static TaskKind kind_of(const Cell& cell) {
    if (std::holds_alternative<Overlap>(cell)) return TaskKind::Compute;
    const auto* action = std::get_if<Action>(&cell);
    if (action == nullptr) return TaskKind::Reduction;
    if (is_compute(action->op)) return TaskKind::Compute;
    if (action->op == Op::OptimizerStep) return TaskKind::Optimizer;
    return action->op == Op::Send ? TaskKind::Transfer : TaskKind::Reduction;
  }

  void add_transfers() {
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p)
        if (const auto* a = std::get_if<Action>(&schedule_.rows[r][p]); a && a->op == Op::Send)
          add_transfer(*a, RankId{static_cast<std::int64_t>(r)}, p);
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p)
        if (const auto* a = std::get_if<Action>(&schedule_.rows[r][p]); a && a->op == Op::Recv)
          match_recv(*a, RankId{static_cast<std::int64_t>(r)}, p);
    for (const Task& task : graph_.tasks)
      PFEIFE_CHECK(task.peer_position != kNone, to_string(task.cell), " has no RECV");
  }
  void add_transfer(const Action& action, RankId rank, std::uint32_t position) {
    const std::size_t edge = edge_of(action);
    Action pattern = action;
    pattern.microbatch.reset();
    std::uint32_t& known = transfer_slot_[{edge, action.direction}];
    if (known == 0) known = slot({TaskKind::Transfer, {pattern}, {}}) + 1;
    std::uint32_t& task = transfer_of(edge, action);
    PFEIFE_CHECK(task == kNone, to_string(action), " sent twice");
    task = static_cast<std::uint32_t>(graph_.tasks.size());
    graph_.tasks.push_back({TaskKind::Transfer,
                            known - 1,
                            rank,
                            placement_.rank(*action.peer),
                            position,
                            kNone,
                            Cell{action},
                            {}});
  }
  void match_recv(const Action& action, RankId rank, std::uint32_t position) {
    const Action sent = send(*action.peer, action.stage, *action.microbatch, action.direction);
    const std::uint32_t task = transfer_of(edge_of(sent), sent);
    PFEIFE_CHECK(task != kNone, to_string(action), " has no SEND");
    Task& transfer = graph_.tasks[task];
    PFEIFE_CHECK(transfer.peer == rank && transfer.peer_position == kNone, to_string(action));
    transfer.peer_position = position;
  }
  std::uint32_t& transfer_of(std::size_t edge, const Action& send) {
    return transfer_[static_cast<std::size_t>(send.direction)]
                    [edge * microbatches_ + send.microbatch->index()];
  }

  void add_reductions() {
    std::map<std::uint32_t, std::uint32_t> task_of;
    for (std::size_t r = 0; r < schedule_.ranks(); ++r)
      for (std::uint32_t p = 0; p < schedule_.rows[r].size(); ++p) {
        const auto* action = std::get_if<Action>(&schedule_.rows[r][p]);
        if (!action || action->op != Op::ReduceGrad) continue;
        const std::uint32_t group = component_[action->stage.index()];
        if (group == kNone) continue;
        const RankId rank{static_cast<std::int64_t>(r)};
        const auto [at, added] =
            task_of.try_emplace(group, static_cast<std::uint32_t>(graph_.tasks.size()));
        if (added)
          graph_.tasks.push_back({TaskKind::Reduction,
                                  slot({TaskKind::Reduction, {}, stages_in(group)}),
                                  rank,
                                  rank,
                                  p,
                                  p,
                                  Cell{*action},
                                  {}});
        auto& parties = graph_.tasks[at->second].parties;
        if (parties.empty() || parties.back() != rank) parties.push_back(rank);
        reductions_.push_back({at->second, rank, p});
      }
    for (std::size_t s = 0; s < stages_.stages; ++s)
      reduction_of_.push_back(component_[s] == kNone || !task_of.contains(component_[s])
                                  ? kNone
                                  : task_of[component_[s]]);
  }
  std::vector<StageId> stages_in(std::uint32_t group) const {
    std::vector<StageId> found;
    for (std::size_t s = 0; s < component_.size(); ++s)
      if (component_[s] == group) found.emplace_back(static_cast<std::int64_t>(s));
    return found;
  }

  // --- edges
  // -----------------------------------------------------------------------------------------------------
  void connect(std::uint32_t from, std::uint32_t to, EdgeKind kind) {
    if (from != kNone) links_.push_back({to, from, kind});
  }

  /// The tasks of a rank in the order in which they hold it: compute and optimizer, and transfers
  /// if they block.
  void connect_rank_order() {
    held_.resize(graph_.ranks);
    for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const bool blocks = task.kind == TaskKind::Transfer && graph_.semantics.blocking;
      if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer || blocks)
        held_[task.rank.index()].push_back({task.position, t});
      if (blocks) held_[task.peer.index()].push_back({task.peer_position, t});
    }
    for (auto& row : held_) {
      std::sort(row.begin(), row.end());
      for (std::size_t i = 1; i < row.size(); ++i)
        connect(row[i - 1].second, row[i].second, EdgeKind::RankOrder);
    }
    for (const ReductionParty& party : reductions_) {
      const auto& row = held_[party.rank.index()];
      const auto after =
          std::lower_bound(row.begin(), row.end(), std::pair{party.position, std::uint32_t{0}});
      if (after != row.begin()) connect(std::prev(after)->second, party.task, EdgeKind::Data);
    }
  }

  void connect_data() {
    const std::size_t count = graph_.tasks.size();
    for (std::uint32_t t = 0; t < count; ++t) {
      const Task& task = graph_.tasks[t];
      if (task.kind == TaskKind::Compute)
        for_each_action(task.cell, [&](const Action& action) { connect_inputs(action, t); });
      if (task.kind == TaskKind::Transfer) {
        const Action& sent = std::get<Action>(task.cell);
        const auto& made = sent.direction == Direction::Forward ? forward_ : backward_;
        const std::uint32_t source = made[cell_key(sent.stage, *sent.microbatch)];
        PFEIFE_CHECK(source != kNone, to_string(sent), ": nothing computes its value");
        connect(source, t, EdgeKind::Data);
      }
      if (task.kind == TaskKind::Optimizer)
        connect(reduction_of_[std::get<Action>(task.cell).stage.index()], t, EdgeKind::Data);
    }
  }
  void connect_inputs(const Action& action, std::uint32_t task) {
    const MicrobatchId m = *action.microbatch;
    const Key own = cell_key(action.stage, m);
    if (action.op == Op::Forward)
      for (const std::size_t e : into_[action.stage.index()])
        connect_value(e, stages_.edges[e].from, action, Direction::Forward, task);
    if (action.op == Op::Backward || action.op == Op::BackwardInput) {
      connect_local(forward_[own], task);
      for (const std::size_t e : out_of_[action.stage.index()])
        if (stages_.edges[e].gradient)
          connect_value(e, stages_.edges[e].to, action, Direction::Backward, task);
    }
    if (action.op == Op::BackwardWeight) connect_local(backward_[own], task);
  }
  /// The action needs what stage `source` hands over along edge `e`: by transfer, or directly on
  /// the same rank.
  void connect_value(std::size_t e, StageId source, const Action& action, Direction direction,
                     std::uint32_t task) {
    const MicrobatchId m = *action.microbatch;
    if (placement_.rank(source) == placement_.rank(action.stage)) {
      connect_local((direction == Direction::Forward ? forward_ : backward_)[cell_key(source, m)],
                    task);
      return;
    }
    const std::uint32_t transfer =
        transfer_[static_cast<std::size_t>(direction)][e * microbatches_ + m.index()];
    PFEIFE_CHECK(transfer != kNone, to_string(action), " waits for a transfer that is not there");
    connect(transfer, task, EdgeKind::Data);
  }
  /// Earlier on the same rank is implied by rank order; anything else is an edge, even onto itself
  /// (a deadlock).
  void connect_local(std::uint32_t from, std::uint32_t task) {
    if (from == kNone) return;
    if (graph_.tasks[from].position >= graph_.tasks[task].position)
      connect(from, task, EdgeKind::Data);
  }

  void connect_queues() {
    const Queues queues = graph_.semantics.queues;
    if (queues == Queues::None || graph_.semantics.blocking)
      return;  // blocking: rank order says it all
    struct Place {
      std::size_t queue;
      std::uint32_t position, task;
      auto operator<=>(const Place&) const = default;
    };
    std::vector<Place> places;
    const std::size_t ranks = graph_.ranks;
    for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (task.kind != TaskKind::Transfer) continue;
      const std::size_t a = task.rank.index(), b = task.peer.index();
      // queue = (owner, peer, direction), coarser as the setting says
      const bool per_peer = queues != Queues::Rank, per_way = queues == Queues::Edge;
      places.push_back({(a * ranks + (per_peer ? b : 0)) * 2, task.position, t});
      places.push_back(
          {(b * ranks + (per_peer ? a : 0)) * 2 + (per_way ? 1 : 0), task.peer_position, t});
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i)
      if (places[i].queue == places[i - 1].queue)
        connect(places[i - 1].task, places[i].task, EdgeKind::Queue);
  }

  void pack_edges() {
    std::sort(links_.begin(), links_.end());
    links_.erase(std::unique(links_.begin(), links_.end(),
                             [](const Link& a, const Link& b) {
                               return a.to == b.to && a.from == b.from && a.kind == b.kind;
                             }),
                 links_.end());
    graph_.edge_begin.assign(graph_.tasks.size() + 1, 0);
    for (const Link& link : links_) ++graph_.edge_begin[link.to + 1];
    std::partial_sum(graph_.edge_begin.begin(), graph_.edge_begin.end(), graph_.edge_begin.begin());
    graph_.edges.reserve(links_.size());
    for (const Link& link : links_) graph_.edges.push_back({TaskId{link.from}, link.kind});
  }

  struct Link {
    std::uint32_t to, from;
    EdgeKind kind;
    friend auto operator<=>(const Link& a, const Link& b) {
      return std::tuple{a.to, a.kind, a.from} <=> std::tuple{b.to, b.kind, b.from};
    }
  };
  struct ReductionParty {
    std::uint32_t task;
    RankId rank;
    std::uint32_t position;
  };

  const Schedule& schedule_;
  const StageGraph& stages_;
  const Placement& placement_;
  std::size_t microbatches_ = 0;
  DependencyGraph graph_;
  std::vector<std::vector<std::size_t>> into_, out_of_;  // [stage] numbers of StageGraph edges
  std::vector<std::uint32_t> component_, reduction_of_;  // [stage]
  std::vector<std::uint32_t> forward_, backward_;        // [stage * microbatches + m] task
  std::vector<std::uint32_t> transfer_[2];  // [direction][edge * microbatches + m] task
  std::vector<std::uint32_t> quick_;
  std::map<std::tuple<TaskKind, std::vector<Action>, std::vector<StageId>>, std::uint32_t> slot_of_;
  std::map<std::pair<std::size_t, Direction>, std::uint32_t> transfer_slot_;  // + 1
  std::vector<ReductionParty> reductions_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>
      held_;  // [rank] (position, task)
  std::vector<Link> links_;
};

}  // namespace

DependencyGraph dependencies(const Schedule& lowered, const StageGraph& stages,
                             const Placement& placement, const Semantics& semantics) {
  return Builder(lowered, stages, placement, semantics).build();
}

TaskOrder task_order(const DependencyGraph& graph) {
  const std::size_t count = graph.size();
  std::vector<std::uint32_t> waits(count), begin(count + 1, 0);
  for (const Edge& edge : graph.edges) ++begin[edge.from.index() + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(graph.edges.size()), fill(begin.begin(), begin.end() - 1);
  for (std::size_t t = 0; t < count; ++t) {
    const auto into = graph.edges_into(TaskId{static_cast<std::int64_t>(t)});
    waits[t] = static_cast<std::uint32_t>(into.size());
    for (const Edge& edge : into) next[fill[edge.from.index()]++] = static_cast<std::uint32_t>(t);
  }
  TaskOrder result;
  result.order.reserve(count);
  for (std::size_t t = 0; t < count; ++t)
    if (waits[t] == 0) result.order.emplace_back(static_cast<std::int64_t>(t));
  for (std::size_t i = 0; i < result.order.size(); ++i) {
    const std::size_t from = result.order[i].index();
    for (std::uint32_t e = begin[from]; e < begin[from + 1]; ++e)
      if (--waits[next[e]] == 0) result.order.emplace_back(static_cast<std::int64_t>(next[e]));
  }
  for (std::size_t t = 0; t < count; ++t)
    if (waits[t] != 0) result.blocked.emplace_back(static_cast<std::int64_t>(t));
  return result;
}

/// The pair a transfer slot's SEND belongs to.
static const StagePair& pair_of(const DurationSlot& slot, const StageCosts& costs) {
  const Action& sent = slot.parts[0];
  const bool onward = sent.direction == Direction::Forward;
  const StagePair* pair =
      find_pair(costs, onward ? sent.stage : *sent.peer, onward ? *sent.peer : sent.stage);
  PFEIFE_CHECK(pair != nullptr, to_string(sent), " has no cost");
  return *pair;
}

std::vector<Nanoseconds> slot_durations(const DependencyGraph& graph, const StageCosts& costs) {
  std::vector<Nanoseconds> durations;
  durations.reserve(graph.slots.size());
  for (const DurationSlot& slot : graph.slots) {
    Nanoseconds time{0};
    if (slot.kind == TaskKind::Transfer) {
      const StagePair& pair = pair_of(slot, costs);
      time = slot.parts[0].direction == Direction::Forward ? pair.forward_time : pair.backward_time;
    } else if (slot.kind == TaskKind::Reduction) {
      for (const StageReduction& reduction : costs.reductions)
        if (std::ranges::binary_search(slot.stages, reduction.stages.front()))
          time += reduction.time;
    } else {
      for (const Action& part : slot.parts) time += action_time(part, costs);
      if (slot.parts.size() > 1)
        time = Nanoseconds{std::llround(static_cast<double>(time.count()) * costs.overlap_factor)};
    }
    durations.push_back(time);
  }
  return durations;
}

Bytes slot_bytes(const DurationSlot& slot, const StageCosts& costs) {
  if (slot.kind != TaskKind::Transfer) return Bytes{0};
  const StagePair& pair = pair_of(slot, costs);
  return slot.parts[0].direction == Direction::Forward ? pair.bytes : pair.gradient_bytes;
}

}  // namespace pfeife
