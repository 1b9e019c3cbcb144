#include "planner/ir/schedule/dependency_graph.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/action_inputs.h"
#include "planner/ir/schedule/dependency_tasks.h"

namespace pfeife {
namespace {

/// What each task waits for.
class Connector {
 public:
  Connector(const DependencyTasks& tasks, const StageGraph& stages, const Placement& placement,
            DependencyGraph& graph)
      : tasks_(tasks), stages_(stages), edges_(stages), placement_(placement), graph_(graph) {}

  void connect_all() {
    connect_rank_order();
    connect_data();
    connect_queues();
    connect_replicas();
    pack_edges();
  }

 private:
  void connect(std::uint32_t from, std::uint32_t to, EdgeKind kind) {
    if (from != kNoTask) links_.push_back({to, from, kind});
  }

  /// The tasks of a rank in the order in which they hold it: compute and optimizer, and transfers
  /// and reductions if they block. A reduction that blocks holds a rank at its last REDUCE_GRAD
  /// or REDUCE_NORM.
  void connect_rank_order() {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> held(
        graph_.ranks);  // [rank] (position, task)
    for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const bool blocks = task.kind == TaskKind::Transfer && graph_.semantics.blocking;
      if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer || blocks)
        held[task.rank.index()].push_back({task.position, t});
      if (blocks) held[task.peer.index()].push_back({task.peer_position, t});
    }
    if (graph_.semantics.blocking) {
      std::map<std::pair<std::size_t, std::uint32_t>, std::uint32_t>
          last;  // (rank, task): position
      for (const ReductionParty& party : tasks_.reductions)
        last[{party.rank.index(), party.task}] = party.position;
      for (const auto& [party, position] : last)
        held[party.first].push_back({position, party.second});
    }
    for (auto& row : held) {
      std::sort(row.begin(), row.end());
      for (std::size_t i = 1; i < row.size(); ++i)
        connect(row[i - 1].second, row[i].second, EdgeKind::RankOrder);
    }
    connect_copies(held);
    for (const ReductionParty& party : tasks_.reductions)
      connect(tasks_.last_gradient[party.stage.index()], party.task, EdgeKind::Data);
    if (tasks_.norm == kNoTask) return;
    for (const std::uint32_t gradient : tasks_.last_gradient)
      connect(gradient, tasks_.norm, EdgeKind::Data);
    for (const std::uint32_t reduction : tasks_.reduction)
      connect(reduction, tasks_.norm, EdgeKind::Data);
  }

  /// Copies begin where they stand in the row, one after another on each engine.
  void connect_copies(
      const std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>& held) {
    std::vector<std::uint32_t> before(graph_.ranks * 2, kNoTask);  // [rank, engine]
    for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (task.kind != TaskKind::Copy) continue;
      const Action& copy = std::get<Action>(task.cell);
      const std::size_t rank = task.rank.index();
      const auto next = std::ranges::lower_bound(held[rank], std::pair{task.position, 0u});
      if (next != held[rank].begin()) connect(std::prev(next)->second, t, EdgeKind::RankOrder);
      const std::size_t queue = stages_.one_copy_engine ? 0 : operation(copy.op).queue;
      std::uint32_t& last = before[rank * 2 + queue];
      connect(last, t, EdgeKind::Queue);
      last = t;
      const std::size_t place = tasks_.place(copy.stage, *copy.microbatch);
      const bool out = copy.op == Op::Offload;
      const std::uint32_t source = (out ? tasks_.forward : tasks_.offload)[place];
      PFEIFE_CHECK(source != kNoTask, to_string(copy), ": nothing makes what it copies");
      connect(source, t, EdgeKind::Data);
      PFEIFE_CHECK(tasks_.backward[place] != kNoTask, to_string(copy), ": nothing reads it");
      if (!out) connect(t, tasks_.backward[place], EdgeKind::Data);
    }
  }

  void connect_data() {
    const std::size_t count = graph_.tasks.size();
    for (const auto& [part, collective] : tasks_.collective_parts)
      connect(part, collective, EdgeKind::Data);
    for (std::uint32_t t = 0; t < count; ++t) {
      const Task& task = graph_.tasks[t];
      if (task.kind == TaskKind::Compute)
        for_each_action(task.cell, [&](const Action& action) { connect_inputs(action, t); });
      if (task.kind == TaskKind::Transfer) {
        const Action& sent = std::get<Action>(task.cell);
        const std::uint32_t source =
            tasks_.makers(sent.direction)[tasks_.place(sent.stage, *sent.microbatch)];
        PFEIFE_CHECK(source != kNoTask, to_string(sent), ": nothing computes its value");
        connect(source, t, EdgeKind::Data);
      }
      if (task.kind == TaskKind::Optimizer) {
        connect(tasks_.reduction[std::get<Action>(task.cell).stage.index()], t, EdgeKind::Data);
        connect(tasks_.norm, t, EdgeKind::Data);
      }
    }
  }
  void connect_inputs(const Action& action, std::uint32_t task) {
    const std::size_t place = tasks_.place(action.stage, *action.microbatch);
    const Operation& kind = operation(action.op);
    if (kind.reads) connect_local(tasks_.makers(*operation(*kind.reads).passes)[place], task);
    if (const auto before = slice_before(action))
      connect_local(tasks_.makers(*kind.passes)[tasks_.place(action.stage, *before)], task);
    for_each_message_read(action, stages_, edges_,
                          [&](std::uint32_t e, StageId source, Direction direction) {
                            connect_value(e, source, action, direction, task);
                          });
    if (const auto read = collective_read(action, stages_)) {
      const std::uint32_t collective =
          tasks_.collective[collective_number(*read)][action.microbatch->index()];
      PFEIFE_CHECK(collective != kNoTask, to_string(action), ": nothing makes what it reads");
      connect(collective, task, EdgeKind::Data);
    }
  }
  /// The action needs what stage `source` hands over along edge `e`: by transfer, or directly on
  /// the same rank.
  void connect_value(std::uint32_t e, StageId source, const Action& action, Direction direction,
                     std::uint32_t task) {
    const MicrobatchId m = *action.microbatch;
    if (placement_.rank(source) == placement_.rank(action.stage)) {
      connect_local(tasks_.makers(direction)[tasks_.place(source, m)], task);
      return;
    }
    const std::uint32_t transfer = tasks_.sent(direction)[e * tasks_.microbatches + m.index()];
    PFEIFE_CHECK(transfer != kNoTask, to_string(action), " waits for a transfer that is not there");
    connect(transfer, task, EdgeKind::Data);
  }
  /// Earlier on the same rank is implied by rank order; anything else is an edge, even onto itself
  /// (a deadlock).
  void connect_local(std::uint32_t from, std::uint32_t task) {
    if (from == kNoTask) return;
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

  /// Each rank's link reduces one stage after another. An optimizer step waits for the stages whose
  /// last gradients its rank has made.
  void connect_replicas() {
    if (tasks_.replicas.empty()) return;
    std::vector<std::uint32_t> begun(graph_.tasks.size(), kNoTask);  // [backward] what runs beside
    std::vector<std::vector<std::size_t>> stages(graph_.ranks);      // [rank]
    for (std::size_t s = 0; s < tasks_.replicas.size(); ++s) {
      if (tasks_.replicas[s].behind == kNoTask) continue;
      begun[tasks_.replicas[s].with] = tasks_.replicas[s].beside;
      stages[placement_.rank(StageId{s}).index()].push_back(s);
    }
    for (std::size_t l = links_.size(); l-- > 0;)
      if (const std::uint32_t beside = begun[links_[l].to]; beside != kNoTask)
        connect(links_[l].from, beside, links_[l].kind);
    for (auto& of_rank : stages) {
      std::ranges::stable_sort(of_rank, {}, [&](std::size_t s) { return tasks_.last_gradient[s]; });
      std::uint32_t before = kNoTask;
      for (const std::size_t s : of_rank) {
        const DependencyTasks::Replicas& of = tasks_.replicas[s];
        connect(before, of.beside, EdgeKind::Queue);
        connect(of.beside, of.behind, EdgeKind::Queue);
        connect(tasks_.last_gradient[s], of.behind, EdgeKind::Data);
        before = of.behind;
      }
      if (tasks_.norm != kNoTask) connect(before, tasks_.norm, EdgeKind::Data);
    }
    for (std::uint32_t t = 0; t < graph_.tasks.size(); ++t) {
      if (graph_.tasks[t].kind != TaskKind::Optimizer) continue;
      std::uint32_t last = kNoTask;
      for (const std::size_t s : stages[graph_.tasks[t].rank.index()])
        if (tasks_.last_gradient[s] < t) last = tasks_.replicas[s].behind;
      connect(last, t, EdgeKind::Data);
    }
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
    friend std::strong_ordering operator<=>(const Link& a, const Link& b) {
      return std::tuple{a.to, a.kind, a.from} <=> std::tuple{b.to, b.kind, b.from};
    }
  };

  const DependencyTasks& tasks_;
  const StageGraph& stages_;
  const StageEdges edges_;
  const Placement& placement_;
  DependencyGraph& graph_;  // has its tasks; gets its edges
  std::vector<Link> links_;
};

}  // namespace

DependencyGraph dependencies(const Schedule& lowered, const StageGraph& stages,
                             const Placement& placement, const Semantics& semantics) {
  DependencyTasks tasks = dependency_tasks(lowered, stages, placement);
  DependencyGraph graph{.ranks = lowered.ranks(),
                        .semantics = semantics,
                        .slots = std::move(tasks.slots),
                        .tasks = std::move(tasks.tasks),
                        .edge_begin = {},
                        .edges = {}};
  Connector(tasks, stages, placement, graph).connect_all();
  return graph;
}

}  // namespace pfeife
