#include "planner/ir/trace/trace.h"

#include <algorithm>

namespace pfeife {

std::string to_string(TraceSource source) {
  switch (source) {
    case TraceSource::Estimated:
      return "estimated";
    case TraceSource::Simulated:
      return "simulated";
    case TraceSource::Measured:
      return "measured";
    case TraceSource::Imported:
      return "imported";
  }
  return "";
}

namespace {

struct Span {
  Nanoseconds begin{0}, end{0};
};

Span whole(const Trace& trace) {
  Span span;
  bool first = true;
  for (const Event& event : trace.events) {
    span.begin = first ? event.start : std::min(span.begin, event.start);
    span.end = first ? event.end : std::max(span.end, event.end);
    first = false;
  }
  return span;
}

bool holds_rank(const Event& event) {
  return event.kind == TaskKind::Compute || event.kind == TaskKind::Optimizer;
}
bool reduces_with(const Event& event, RankId rank) {
  return event.kind == TaskKind::Reduction &&
         std::ranges::find(event.parties, rank) != event.parties.end();
}

/// Length of what two spans share.
Nanoseconds overlap(Span a, Span b) {
  return std::max(Nanoseconds{0}, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

/// Splits the time `gap` before `event` by what the event it waited for was doing.
void explain(const Trace& trace, const Event& event, Span gap, Attribution& out) {
  Nanoseconds left = gap.end - gap.begin;
  if (left <= Nanoseconds{0}) return;
  if (event.waited_for) {
    const Event& cause = trace.events[*event.waited_for];
    const Nanoseconds running = overlap(gap, {cause.start, cause.end});
    if (cause.kind == TaskKind::Transfer) {
      const Nanoseconds queued = overlap(gap, {cause.posted, cause.start});
      out.exposed_transfer += running;
      out.queue_wait += queued;
      left -= running + queued;
    } else if (cause.kind == TaskKind::Copy) {
      out.exposed_transfer += running;
      left -= running;
    } else if (cause.kind == TaskKind::Reduction) {
      // And those before it, of the rank's other stages, which it waited for.
      Nanoseconds reducing = running;
      const Event* reduction = &cause;
      while (reduction->waited_for &&
             trace.events[*reduction->waited_for].kind == TaskKind::Reduction) {
        reduction = &trace.events[*reduction->waited_for];
        reducing += overlap({gap.begin, std::min(gap.end, cause.start)},
                            {reduction->start, reduction->end});
      }
      out.reduction += reducing;
      left -= reducing;
    }
  }
  out.dependency_wait += left;
}

}  // namespace

Nanoseconds step_time(const Trace& trace) {
  const Span span = whole(trace);
  return span.end - span.begin;
}

Nanoseconds busy_time(const Trace& trace, RankId rank) {
  Nanoseconds busy{0};
  for (const Event& event : trace.events)
    if (holds_rank(event) && event.rank == rank) busy += event.end - event.start - event.launch;
  return busy;
}

namespace {

/// The bubble of every rank, in one pass over the events.
std::vector<double> bubbles(const Trace& trace) {
  std::vector<double> shares(trace.ranks, 0);
  const Nanoseconds step = step_time(trace);
  if (step <= Nanoseconds{0}) return shares;
  std::vector<Nanoseconds> computing(trace.ranks, Nanoseconds{0});
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Compute)
      computing[event.rank.index()] += event.end - event.start - event.launch;
  for (std::size_t r = 0; r < trace.ranks; ++r)
    shares[r] = 1 - static_cast<double>(computing[r].count()) / static_cast<double>(step.count());
  return shares;
}

}  // namespace

double bubble(const Trace& trace, RankId rank) { return bubbles(trace)[rank.index()]; }

double bubble(const Trace& trace) {
  if (trace.ranks == 0) return 0;
  double sum = 0;
  for (const double share : bubbles(trace)) sum += share;
  return sum / static_cast<double>(trace.ranks);
}

RankId critical_rank(const Trace& trace) {
  RankId critical;
  Nanoseconds latest = Nanoseconds::min();
  const auto ends_on = [&](RankId rank, Nanoseconds end) {
    if (end > latest || (end == latest && rank < critical)) latest = end, critical = rank;
  };
  for (const Event& event : trace.events) {
    if (holds_rank(event)) ends_on(event.rank, event.end);
    if (event.kind == TaskKind::Reduction)
      for (const RankId party : event.parties) ends_on(party, event.end);
  }
  return critical;
}

Bytes peak_memory(const Trace& trace, RankId rank) {
  Bytes peak;
  if (rank.index() < trace.memory.size())
    for (const MemorySample& sample : trace.memory[rank.index()])
      peak = std::max(peak, sample.bytes);
  return peak;
}

Attribution attribution(const Trace& trace, RankId rank) {
  std::vector<const Event*> events;
  for (const Event& event : trace.events)
    if (holds_rank(event) && event.rank == rank) events.push_back(&event);
  std::ranges::stable_sort(events, {}, [](const Event* e) { return std::pair{e->start, e->end}; });

  const Span step = whole(trace);
  Attribution out;
  Nanoseconds done = step.begin;
  for (const Event* event : events) {
    explain(trace, *event, {done, event->start}, out);
    out.launch += event->launch;
    (event->kind == TaskKind::Optimizer ? out.optimizer : out.compute) +=
        event->end - event->start - event->launch;
    done = event->end;
  }
  Nanoseconds tail = step.end - done;
  for (const Event& event : trace.events)
    if (reduces_with(event, rank)) {
      const Nanoseconds reducing =
          std::min(tail, overlap({done, step.end}, {event.start, event.end}));
      out.reduction += reducing;
      tail -= reducing;
    }
  out.dependency_wait += tail;
  return out;
}

}  // namespace pfeife
