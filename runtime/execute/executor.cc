#include "runtime/execute/executor.h"

#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/trace/trace_waits.h"
#include "runtime/transport/reason.h"

namespace pfeife {
namespace {

Tag tag_of(std::uint64_t step, TaskId task) {
  return {step, static_cast<std::uint32_t>(task.value), 0};
}

}  // namespace

RankExecutor::RankExecutor(const DependencyGraph& graph, const Placement& placement, RankId rank,
                           RankWork work, Transport& transport)
    : graph_(graph),
      placement_(placement),
      rank_(rank),
      work_(std::move(work)),
      transport_(transport) {
  PFEIFE_CHECK(graph.semantics.queues == Queues::None && !graph.semantics.blocking,
               "executed graphs have no queues");
  place_norm();
  for (std::size_t t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    const bool runs_here = task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer ||
                           task.kind == TaskKind::Copy;
    if (runs_here && task.rank == rank_) order_.push_back({task.position, Doing::Run, TaskId{t}});
    if (task.kind == TaskKind::Transfer && task.rank == rank_)
      for (const Edge& edge : graph.edges_into(TaskId{t})) sends_[edge.from].push_back(TaskId{t});
  }
  if (work_.timed_on) clock_.emplace(*work_.timed_on);
  transport.keeps_rows() ? order_with_row() : order_without_row();
  std::ranges::stable_sort(order_, {}, &Entry::position);
  for (const Entry& entry : order_)
    if (entry.doing == Doing::Run)
      for_each_action(graph.tasks[entry.task.index()].cell, [&](const Action& action) {
        if (makes_weight_gradient(action.op)) last_gradient_[action.stage] = entry.task;
      });
}

/// Before the rank's first optimizer step.
void RankExecutor::place_norm() {
  std::uint32_t first_step = ~std::uint32_t{0};
  for (const Task& task : graph_.tasks)
    if (task.kind == TaskKind::Optimizer && task.rank == rank_)
      first_step = std::min(first_step, task.position);
  for (std::size_t t = 0; t < graph_.size(); ++t)
    if (is_norm(graph_.tasks[t])) order_.push_back({first_step, Doing::Settle, TaskId{t}});
}

void RankExecutor::order_with_row() {
  std::map<StageId, std::uint32_t> reduced;  // last REDUCE_GRAD of a stage
  for (std::uint32_t p = 0; p < work_.row.size(); ++p)
    for_each_action(work_.row[p], [&](const Action& action) {
      if (action.op == Op::ReduceGrad) reduced[action.stage] = p;
    });
  for (std::size_t t = 0; t < graph_.size(); ++t) {
    const Task& task = graph_.tasks[t];
    if (task.kind == TaskKind::Transfer && task.rank == rank_)
      order_.push_back({task.position, Doing::Send, TaskId{t}});
    if (task.kind == TaskKind::Transfer && task.peer == rank_)
      order_.push_back({task.peer_position, Doing::Expect, TaskId{t}});
    if (!reduces_here(task)) continue;
    std::uint32_t last = 0;
    for (const StageId s : graph_.slots[task.slot].stages)
      if (is_mine(s)) last = std::max(last, reduced.at(s));
    order_.push_back({last, Doing::Reduce, TaskId{t}});
  }
}

void RankExecutor::order_without_row() {
  for (std::size_t t = 0; t < graph_.size(); ++t) {
    const Task& task = graph_.tasks[t];
    if (!reduces_here(task)) continue;
    std::optional<TaskId> last;
    for (const Edge& edge : graph_.edges_into(TaskId{t}))
      if (const Task& before = graph_.tasks[edge.from.index()]; before.rank == rank_)
        if (!last || graph_.tasks[last->index()].position < before.position) last = edge.from;
    if (last)
      completes_[*last].push_back(TaskId{t});
    else
      at_start_.push_back(TaskId{t});
  }
}

std::vector<TaskRecord> RankExecutor::run(std::uint64_t step) {
  step_ = step;
  inbox_.clear();
  contributed_.clear();
  records_.clear();
  const Cell* running = nullptr;
  try {
    begin_clock();
    for (const TaskId t : at_start_) contribute(t);
    for (const Entry& entry : order_) {
      running = &graph_.tasks[entry.task.index()].cell;
      perform(entry);
    }
    finish_reductions();
    transport_.end_step();
    read_clock();
  } catch (const std::exception& error) {
    const RankFault fault =
        rank_fault(error, work_.number.value_or(rank_), running ? to_string(*running) : "");
    transport_.stop(fault);
    throw fault;
  }
  return std::move(records_);
}

/// The device has nothing to do yet: its time and the host's are brought together.
void RankExecutor::begin_clock() {
  if (!clock_) return;
  finish(clock_->device());
  Nanoseconds shortest = Nanoseconds::max();
  for (int i = 0; i < 4; ++i) {  // the host may be held up between its look at the clock and a mark
    const Nanoseconds before = now(), at = clock_->mark(), length = now() - before;
    if (length >= shortest) continue;
    shortest = length;
    clock_start_ = {at, before + length / 2};
  }
}

/// Marks in the records become times.
void RankExecutor::read_clock() {
  if (!clock_) return;
  clock_->read();
  const auto time = [&](Nanoseconds mark) {
    if (mark == kUnknownStart || mark == kUnknownEnd) return mark;
    return clock_start_.second + clock_->time(mark) - clock_->time(clock_start_.first);
  };
  for (TaskRecord& record : records_) record = {record.task, time(record.start), time(record.end)};
}

void RankExecutor::perform(const Entry& entry) {
  const Task& task = graph_.tasks[entry.task.index()];
  switch (entry.doing) {
    case Doing::Run:
      if (work_.entering) work_.entering(task.cell);
      return run_task(entry.task);
    case Doing::Send: {
      const Action& sent = std::get<Action>(task.cell);
      auto value = inbox_.extract({sent.stage, *sent.peer, *sent.microbatch, sent.direction});
      PFEIFE_CHECK(value, to_string(sent), " has nothing to send");
      return transport_.send_in_row(task.peer, tag_of(step_, entry.task), form_of(sent),
                                    std::move(value.mapped()));
    }
    case Doing::Expect:
      return transport_.expect(task.rank, tag_of(step_, entry.task),
                               form_of(std::get<Action>(task.cell)));
    case Doing::Reduce:
      contributed_[entry.task] = mark();
      return transport_.add_up(task.parties, tag_of(step_, entry.task), work_.summand(task));
    case Doing::Settle: {
      finish_reductions();
      const Nanoseconds start = mark();
      work_.settle(tag_of(step_, entry.task));
      records_.push_back({entry.task, start, mark()});
    }
  }
}

Form RankExecutor::form_of(const Action& sent) const {
  return {sent.stage, *sent.peer, sent.direction == Direction::Forward,
          work_.samples ? work_.samples(*sent.microbatch) : 0};
}

void RankExecutor::run_task(TaskId id) {
  const Task& task = graph_.tasks[id.index()];
  if (task.kind == TaskKind::Copy) return run_copy(id);
  for (const Edge& edge : graph_.edges_into(id)) {
    const Task& before = graph_.tasks[edge.from.index()];
    if (before.kind == TaskKind::Reduction) finish_reduction(edge.from);
    if (before.kind == TaskKind::Copy) work_.await_reload(std::get<Action>(before.cell));
  }
  if (task.kind == TaskKind::Optimizer) {
    const StageId stage = std::get<Action>(task.cell).stage;
    if (work_.before_step) work_.before_step(stage);
    const Nanoseconds start = mark();
    work_.optimizer_step(stage);
    records_.push_back({id, start, mark()});
  } else {
    receive_for(id);
    std::vector<std::pair<Action, PerStage>> parts;  // inputs, then outputs
    for_each_action(task.cell, [&](const Action& action) {
      const Stage& stage = *work_.stages.at(action.stage);
      PerStage in;
      if (const auto way = operation(action.op).passes)
        in = receive_from(*way == Direction::Forward ? stage.sources() : stage.destinations(),
                          action, *way);
      parts.emplace_back(action, std::move(in));
    });
    const Nanoseconds start = mark();
    for (auto& [action, tensors] : parts) tensors = perform(action, tensors);
    const Nanoseconds end = mark();
    records_.push_back({id, start, end});
    if (clock_)
      for (const TaskId transfer : sends_[id]) records_.push_back({transfer, end, kUnknownEnd});
    for (auto& [action, tensors] : parts) hand_on(id, action, std::move(tensors));
  }
  if (const auto found = completes_.find(id); found != completes_.end())
    for (const TaskId reduction : found->second) contribute(reduction);
  if (work_.gradients_made)
    for_each_action(task.cell, [&](const Action& action) {
      if (makes_weight_gradient(action.op) && last_gradient_.at(action.stage) == id)
        work_.gradients_made(action.stage);
    });
}

void RankExecutor::run_copy(TaskId id) {
  const Action& copy = std::get<Action>(graph_.tasks[id.index()].cell);
  const auto [start, end] = work_.copy(copy, [this] { return mark(); });
  records_.push_back({id, start, end});
}

void RankExecutor::receive_for(TaskId id) {
  for (const Edge& edge : graph_.edges_into(id)) {
    const Task& transfer = graph_.tasks[edge.from.index()];
    if (transfer.kind != TaskKind::Transfer) continue;
    const Action& sent = std::get<Action>(transfer.cell);
    Message message = transport_.receive(transfer.rank, tag_of(step_, edge.from));
    if (clock_)
      records_.push_back({edge.from, kUnknownStart, mark()});
    else
      records_.push_back({edge.from, message.posted, message.arrived});
    inbox_[{sent.stage, *sent.peer, *sent.microbatch, sent.direction}] = std::move(message.tensors);
  }
}

PerStage RankExecutor::receive_from(const std::vector<StageId>& others, const Action& action,
                                    Direction direction) {
  PerStage in;
  for (const StageId other : others) {
    auto found = inbox_.extract(Route{other, action.stage, *action.microbatch, direction});
    PFEIFE_CHECK(found || direction == Direction::Backward, to_string(action),
                 " has nothing from stage ", other.value);
    in.push_back(found ? std::move(found.mapped()) : Tensors{});  // no gradient: nothing is sent
  }
  return in;
}

PerStage RankExecutor::perform(const Action& action, const PerStage& in) {
  Stage& stage = *work_.stages.at(action.stage);
  switch (action.op) {
    case Op::Forward:
      return stage.forward(*action.microbatch, in);
    case Op::Backward:
      return stage.backward(*action.microbatch, in);
    case Op::BackwardInput:
      return stage.backward_input(*action.microbatch, in);
    default:
      PFEIFE_CHECK(action.op == Op::BackwardWeight, to_string(action), " is not computed");
      stage.backward_weight(*action.microbatch);
      return {};
  }
}

void RankExecutor::hand_on(TaskId task, const Action& action, PerStage out) {
  const std::optional<Direction> way = operation(action.op).passes;
  if (!way) return;
  const Stage& stage = *work_.stages.at(action.stage);
  const bool onward = *way == Direction::Forward;
  const std::vector<StageId>& others = onward ? stage.destinations() : stage.sources();
  std::map<StageId, Tensors> remote;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (is_mine(others[i]) || transport_.keeps_rows())
      inbox_[{action.stage, others[i], *action.microbatch, *way}] = std::move(out[i]);
    else
      remote[others[i]] = std::move(out[i]);
  }
  const auto found = sends_.find(task);
  if (found == sends_.end() || transport_.keeps_rows()) return;
  for (const TaskId transfer : found->second) {
    const Action& sent = std::get<Action>(graph_.tasks[transfer.index()].cell);
    const bool same = sent.stage == action.stage && sent.microbatch == action.microbatch &&
                      (sent.direction == Direction::Forward) == onward;
    if (same)
      transport_.send(placement_.rank(*sent.peer), tag_of(step_, transfer),
                      std::move(remote[*sent.peer]));
  }
}

void RankExecutor::contribute(TaskId id) {
  const Task& reduction = graph_.tasks[id.index()];
  contributed_[id] = mark();  // before sending: another party may have it all a moment later
  for (const RankId other : reduction.parties)
    if (other != rank_)
      transport_.send(other, tag_of(step_, id), work_.contribution(reduction, other));
}

void RankExecutor::finish_reductions() {
  while (!contributed_.empty()) finish_reduction(contributed_.begin()->first);
}

void RankExecutor::finish_reduction(TaskId id) {
  const auto contributed = contributed_.find(id);
  if (contributed == contributed_.end()) return;  // finished for another stage already
  const Task& reduction = graph_.tasks[id.index()];
  if (transport_.keeps_rows()) {
    work_.take_sum(reduction, transport_.sum(tag_of(step_, id)));
    records_.push_back({id, contributed->second, mark()});
    contributed_.erase(contributed);
    return;
  }
  std::map<RankId, Tensors> parts;
  Nanoseconds end = contributed->second;  // not of marks
  for (const RankId other : reduction.parties) {
    if (other == rank_) continue;
    Message message = transport_.receive(other, tag_of(step_, id));
    end = std::max(end, message.arrived);
    parts[other] = std::move(message.tensors);
  }
  work_.reduce(reduction, parts);
  records_.push_back({id, contributed->second, clock_ ? mark() : end});
  contributed_.erase(contributed);
}

Trace measured_trace(const DependencyGraph& graph,
                     std::span<const std::vector<TaskRecord>> records) {
  Trace trace{.source = TraceSource::Measured, .ranks = graph.ranks};
  Nanoseconds first = Nanoseconds::max();
  std::vector<int> seen(graph.size());
  for (const Task& task : graph.tasks)
    trace.events.push_back({.kind = task.kind,
                            .rank = task.rank,
                            .peer = task.peer,
                            .parties = task.parties,
                            .cell = task.cell});
  for (const auto& rank : records)
    for (const TaskRecord& record : rank) {
      Event& event = trace.events[record.task.index()];
      const bool fresh = seen[record.task.index()]++ == 0;
      // A reduction begins with its last part and ends where it is first complete.
      event.start = fresh ? record.start : std::max(event.start, record.start);
      event.end = fresh ? record.end : std::min(event.end, record.end);
      if (record.start != kUnknownStart) first = std::min(first, record.start);
    }
  for (std::size_t t = 0; t < graph.size(); ++t) {
    Event& event = trace.events[t];
    PFEIFE_CHECK(seen[t] > 0, to_string(event.cell), " was not recorded");
    event.start -= first;
    event.end = std::max(event.end - first, event.start);
  }
  explain_waits(graph, trace);
  return trace;
}

std::string broken_edge(const DependencyGraph& graph, const Trace& trace,
                        Nanoseconds clocks_differ) {
  for (std::size_t t = 0; t < graph.size(); ++t)
    for (const Edge& edge : graph.edges_into(TaskId{t})) {
      const Event &before = trace.events[edge.from.index()], &after = trace.events[t];
      if (after.start + clocks_differ < before.end)
        return to_string(after.cell) + " started " + to_string(before.end - after.start) +
               " before " + to_string(before.cell) + " ended";
    }
  return "";
}

}  // namespace pfeife
