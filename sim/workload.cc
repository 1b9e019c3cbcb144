#include "sim/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Lays out tasks, and numbers the routes they need.
class ItemMaker {
 public:
  ItemMaker(const SimulationJob& job, Workload& work)
      : job_(job), work_(work), times_(slot_durations(job.graph->slots, *job.costs)) {
    for (const Nanoseconds time : times_)
      PFEIFE_CHECK(time >= Nanoseconds{0}, "a task of negative length");
  }

  WorkItem item(const Task& task) {
    const Nanoseconds time = times_[task.slot];
    WorkItem item{.kind = task.kind, .rank = static_cast<std::uint32_t>(task.rank.value)};
    item.busy = varying_time(task, time, *job_.placement, *job_.cluster);
    item.fixed = time - item.busy;
    if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer) {
      item.fixed += job_.launch_overhead;
      return item;
    }
    item.how = WorkItem::How::Timer;
    if (job_.graph->semantics.links != Links::Shared) return item;
    if (task.kind == TaskKind::Transfer) share_links(task, item);
    if (task.kind == TaskKind::Reduction) share_ring(task, item);
    return item;
  }

 private:
  /// A transfer is a flow, or a mere delay if there is nothing to share. (A flow without latency
  /// would have another weight than the rest: varying_time() leaves it 1 ns.)
  void share_links(const Task& task, WorkItem& item) {
    const DeviceId from = job_.placement->device(task.rank), to = job_.placement->device(task.peer);
    const std::vector<std::size_t>& links = job_.cluster->path(from, to).links;
    item.bytes = slot_bytes(job_.graph->slots[task.slot], *job_.costs);
    if (links.empty() || item.bytes.value <= 0 || item.busy <= Nanoseconds{0}) return;
    item.how = WorkItem::How::Flow;
    item.route = number({from, to, std::nullopt, links, narrowest(*job_.cluster, links)});
  }

  /// What replicas reduce is a flow over its device's ring, with 1 ns of latency as every flow.
  void share_ring(const Task& task, WorkItem& item) {
    const DurationSlot& slot = job_.graph->slots[task.slot];
    if (slot.parts.empty() || slot.parts.front().op != Op::ReduceGrad) return;
    const StageId stage = slot.parts.front().stage;
    const double share = job_.costs->replicas[stage.index()].share();
    const DeviceId device = job_.placement->device(task.rank);
    const std::vector<std::size_t> links = ring_links(*job_.cluster, device);
    if (share <= 0 || item.fixed <= Nanoseconds{1} || links.empty()) return;
    item.busy = item.fixed - Nanoseconds{1}, item.fixed = Nanoseconds{1};
    item.how = WorkItem::How::Flow;
    item.route = number({device, device, stage, links, share * narrowest(*job_.cluster, links)});
    const double bytes = work_.routes[item.route].capacity.value * seconds(item.busy);
    item.bytes = Bytes{std::max<std::int64_t>(1, std::llround(bytes))};
  }

  std::uint32_t number(FlowRoute route) {
    const auto [at, added] = numbers_.try_emplace(std::tuple{route.from, route.to, route.ring},
                                                  static_cast<std::uint32_t>(work_.routes.size()));
    if (!added) return at->second;
    for (std::size_t& link : route.links) link = link_number(link);
    work_.routes.push_back(std::move(route));
    return at->second;
  }
  std::size_t link_number(std::size_t in_cluster) {
    const auto [at, added] = link_numbers_.try_emplace(in_cluster, work_.links.size());
    if (added) work_.links.push_back(job_.cluster->links[in_cluster].capacity());
    return at->second;
  }

  const SimulationJob& job_;
  Workload& work_;
  std::vector<Nanoseconds> times_;  // [slot]
  std::map<std::tuple<DeviceId, DeviceId, std::optional<StageId>>, std::uint32_t> numbers_;
  std::map<std::size_t, std::size_t> link_numbers_;
};

void index_successors(const DependencyGraph& graph, Workload& work) {
  const std::size_t count = graph.size();
  work.next_begin.assign(count + 1, 0);
  for (const Edge& edge : graph.edges) ++work.next_begin[edge.from.index() + 1];
  std::partial_sum(work.next_begin.begin(), work.next_begin.end(), work.next_begin.begin());
  std::vector<std::uint32_t> fill(work.next_begin.begin(), work.next_begin.end() - 1);
  work.next.resize(graph.edges.size());
  work.waits.resize(count);
  for (std::size_t t = 0; t < count; ++t) {
    const auto into = graph.edges_into(TaskId{t});
    work.waits[t] = static_cast<std::uint32_t>(into.size());
    for (const Edge& edge : into)
      work.next[fill[edge.from.index()]++] = static_cast<std::uint32_t>(t);
  }
}

}  // namespace

Workload workload_of(const SimulationJob& job) {
  Workload work;
  work.ranks = job.graph->ranks;
  ItemMaker maker(job, work);
  work.items.reserve(job.graph->size());
  for (const Task& task : job.graph->tasks) work.items.push_back(maker.item(task));
  index_successors(*job.graph, work);
  return work;
}

Trace trace_of(const DependencyGraph& graph, std::span<const std::int64_t> ends,
               Nanoseconds launch_overhead) {
  Trace trace;
  trace.source = TraceSource::Simulated;
  trace.ranks = graph.ranks;
  trace.events.reserve(graph.size());
  for (std::size_t t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    Event event{.kind = task.kind,
                .rank = task.rank,
                .peer = task.peer,
                .parties = task.parties,
                .cell = task.cell,
                .end = Nanoseconds{ends[t]}};
    if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer)
      event.launch = launch_overhead;
    for (const Edge& edge : graph.edges_into(TaskId{t})) {
      const Nanoseconds ready{ends[edge.from.index()]};
      if (edge.kind == EdgeKind::Data) event.posted = std::max(event.posted, ready);
      if (!event.waited_for || ready > event.start) event.waited_for = edge.from.index();
      event.start = std::max(event.start, ready);
    }
    trace.events.push_back(std::move(event));
  }
  start_reloads_late(trace, graph);
  return trace;
}

}  // namespace pfeife
