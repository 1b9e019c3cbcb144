
#include "planner/io/results/chrome_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/trace/trace_lanes.h"

namespace pfeife {
namespace {

/// JSON text of a string, with broken UTF-8 replaced.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Microseconds with three decimals: 1234567 ns -> 1234.567.
std::string microseconds(Nanoseconds time) {
  const std::int64_t ns = time.count(), size = ns < 0 ? -ns : ns;
  return (ns < 0 ? "-" : "") + std::to_string(size / 1000) + "." +
         std::to_string(1000 + size % 1000).substr(1);
}

/// Writes the elements of a JSON array one a line.
class Elements {
 public:
  explicit Elements(std::ostream& out) : out_(out) {}
  std::ostream& next() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
    return out_;
  }
  /// More of the element that was begun last.
  std::ostream& more() { return out_; }

 private:
  std::ostream& out_;
  bool first_ = true;
};

std::string category(const Event& event) {
  switch (event.kind) {
    case TaskKind::Transfer:
      return "transfer";
    case TaskKind::Reduction:
      return "reduction";
    case TaskKind::Optimizer:
      return "optimizer";
    case TaskKind::Copy:
      return "copy";
    case TaskKind::Compute:
      break;
  }
  const auto* action = std::get_if<Action>(&event.cell);
  if (action == nullptr) return "overlap";
  return std::string(operation(action->op).category);
}

/// Which thread of which process an event is drawn on; both count from 1, because viewers take 0
/// for the idle thread.
struct Track {
  std::size_t process = 1, thread = 1;
};

/// The reserved colour of chrome://tracing that is nearest to that of the pictures; "" = any.
std::string_view reserved_color(const Event& event) {
  if (event.kind == TaskKind::Optimizer) return operation(Op::OptimizerStep).chrome_color;
  const auto* action = std::get_if<Action>(&event.cell);
  return action == nullptr ? "" : operation(action->op).chrome_color;
}

/// A figure that changes by so much at a time.
struct Change {
  Nanoseconds time;
  int by = 0;
};

/// What happens in a trace from `from` until before `to` is not written.
struct LeftOut {
  Nanoseconds from = Nanoseconds::max(), to = Nanoseconds::max();
  bool contains(Nanoseconds time) const { return from <= time && time < to; }
};

LeftOut left_out(const Trace& trace, std::size_t most_events) {
  if (trace.events.size() <= most_events) return {};
  std::vector<Nanoseconds> starts;
  for (const Event& event : trace.events) starts.push_back(event.start);
  std::ranges::sort(starts);
  return {starts[most_events / 2], starts[starts.size() - most_events / 2]};
}

class Writer {
 public:
  Writer(Elements& elements, const Trace& trace, LeftOut left_out, std::string prefix,
         std::size_t first_process, std::size_t first_flow)
      : elements_(elements),
        trace_(trace),
        left_out_(left_out),
        prefix_(std::move(prefix)),
        first_process_(first_process),
        flow_(first_flow),
        rows_(lanes(trace)),
        tracks_(trace.events.size()) {
    for (const Event& event : trace.events) {
      origin_ = &event == trace.events.data() ? event.start : std::min(origin_, event.start);
      index_makers(event);
    }
  }

  /// Returns the number of the next flow.
  std::size_t write() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      write_names(r);
      for (const LaneItem& item : rows_[r].compute) write_slice(r, item, 1 + item.lane);
      for (const LaneItem& item : rows_[r].communication)
        write_slice(r, item, 1 + rows_[r].compute_lanes + item.lane);
      write_memory(r);
      write_in_flight(r);
    }
    write_links();
    for (std::size_t i = 0; i < trace_.events.size(); ++i) write_flow(i);
    write_left_out();
    return flow_;
  }

 private:
  using Key = std::tuple<Direction, StageId, MicrobatchId>;

  void index_makers(const Event& event) {
    if (event.kind != TaskKind::Compute) return;
    const auto index = static_cast<std::size_t>(&event - trace_.events.data());
    for_each_action(event.cell, [&](const Action& action) {
      const std::optional<Direction> way = operation(action.op).passes;
      if (action.microbatch && way) maker_[{*way, action.stage, *action.microbatch}] = index;
    });
  }

  std::string time(Nanoseconds t) const { return microseconds(t - origin_); }
  std::string place(const Track& track) const {
    return "\"pid\":" + std::to_string(track.process) + ",\"tid\":" + std::to_string(track.thread);
  }

  void write_name(const std::string& kind, const Track& track, const std::string& name) {
    elements_.next() << R"({"ph":"M","name":")" << kind << "_name\"," << place(track)
                     << R"(,"args":{"name":)" << quoted(name) << "}}";
    elements_.next() << R"({"ph":"M","name":")" << kind << "_sort_index\"," << place(track)
                     << R"(,"args":{"sort_index":)"
                     << (kind == "process" ? track.process : track.thread) << "}}";
  }
  void write_names(std::size_t rank) {
    const std::size_t process = first_process_ + rank;
    write_name("process", {process, 1}, prefix_ + "rank " + std::to_string(rank));
    const RankLanes& row = rows_[rank];
    for (std::size_t lane = 0; lane < row.compute_lanes; ++lane)
      write_name("thread", {process, 1 + lane}, numbered("compute", lane));
    for (std::size_t lane = 0; lane < row.communication_lanes; ++lane)
      write_name("thread", {process, 1 + row.compute_lanes + lane}, numbered("transfer", lane));
  }
  static std::string numbered(const std::string& name, std::size_t lane) {
    return lane == 0 ? name : name + " " + std::to_string(lane + 1);
  }

  void write_slice(std::size_t rank, const LaneItem& item, std::size_t thread) {
    const Event& event = trace_.events[item.event];
    if (left_out_.contains(event.start)) return;
    const Track track{first_process_ + rank, thread};
    if (!item.guest) tracks_[item.event] = track;
    elements_.next() << R"({"ph":"X",)" << place(track) << R"(,"ts":)" << time(event.start)
                     << R"(,"dur":)" << microseconds(event.end - event.start) << R"(,"name":)"
                     << quoted(to_string(event.cell)) << R"(,"cat":")" << category(event) << "\"";
    if (const std::string_view color = reserved_color(event); !color.empty())
      elements_.more() << R"(,"cname":")" << color << "\"";
    elements_.more() << R"(,"args":{)" << arguments(event) << "}}";
  }
  std::string arguments(const Event& event) const {
    std::string text = "\"action\":" + quoted(to_string(event.cell));
    if (const auto* action = std::get_if<Action>(&event.cell)) {
      text += ",\"stage\":" + to_string(action->stage);
      if (const auto& m = action->microbatch) {
        text += ",\"microbatch\":" + std::to_string(m->microbatch());
        if (m->slices > 1) text += ",\"slice\":" + std::to_string(m->slice());
      }
    }
    text += ",\"posted\":" + time(event.posted);
    if (event.launch > Nanoseconds{0}) text += ",\"launch\":" + microseconds(event.launch);
    if (event.kind == TaskKind::Transfer) text += ",\"to_rank\":" + to_string(event.peer);
    if (event.waited_for && *event.waited_for < trace_.events.size())
      text += ",\"waited_for\":" + quoted(to_string(trace_.events[*event.waited_for].cell));
    return text;
  }

  void write_memory(std::size_t rank) {
    if (rank >= trace_.memory.size()) return;
    for (const MemorySample& sample : trace_.memory[rank])
      if (!left_out_.contains(sample.time))
        elements_.next() << R"({"ph":"C","pid":)" << first_process_ + rank
                         << R"(,"name":"memory","ts":)" << time(sample.time)
                         << R"(,"args":{"bytes":)" << sample.bytes.value << "}}";
  }

  /// A counter of the process that starts at 0.
  void write_counter(std::size_t process, const std::string& name, const char* unit,
                     std::vector<Change> changes) {
    std::ranges::stable_sort(changes, {}, &Change::time);
    int now = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      now += changes[i].by;
      const bool last = i + 1 == changes.size() || changes[i + 1].time != changes[i].time;
      if (last && !left_out_.contains(changes[i].time))
        elements_.next() << R"({"ph":"C","pid":)" << process << R"(,"name":)" << quoted(name)
                         << R"(,"ts":)" << time(changes[i].time) << R"(,"args":{")" << unit
                         << "\":" << now << "}}";
    }
  }

  /// Microbatches of the rank's stages whose forward has begun and whose backward has not ended (of
  /// a split one, whose I has not).
  void write_in_flight(std::size_t rank) {
    std::vector<Change> changes;
    for (const LaneItem& item : rows_[rank].compute) {
      const Event& event = trace_.events[item.event];
      if (item.guest || event.kind != TaskKind::Compute) continue;
      for_each_action(event.cell, [&](const Action& action) {
        const int saved = operation(action.op).saved;
        if (saved != 0) changes.push_back({saved > 0 ? event.start : event.end, saved});
      });
    }
    write_counter(first_process_ + rank, "microbatches in flight", "microbatches", changes);
  }

  /// Counters of a process behind the ranks': how full each link is, where the trace knows; else
  /// the transfers under way from each rank to each other one.
  void write_links() {
    if (!trace_.links.empty()) return write_loads();
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Change>> links;
    for (const Event& event : trace_.events)
      if (event.kind == TaskKind::Transfer) {
        auto& changes = links[{event.rank.index(), event.peer.index()}];
        changes.push_back({event.start, 1});
        changes.push_back({event.end, -1});
      }
    if (links.empty()) return;
    const std::size_t process = first_process_ + rows_.size();
    write_name("process", {process, 1}, prefix_ + "links");
    for (const auto& [ends, changes] : links)
      write_counter(process,
                    "rank " + std::to_string(ends.first) + " to " + std::to_string(ends.second),
                    "transfers", changes);
  }

  void write_loads() {
    const std::size_t process = first_process_ + rows_.size();
    write_name("process", {process, 1}, prefix_ + "links");
    for (const LinkLoad& link : trace_.links) {
      const std::string name =
          link.link + ", % of " + fixed(link.capacity.value / 1e9, 2) + " GB/s";
      for (const LoadSample& sample : link.samples)
        if (!left_out_.contains(sample.time))
          elements_.next() << R"({"ph":"C","pid":)" << process << R"(,"name":)" << quoted(name)
                           << R"(,"ts":)" << time(sample.time) << R"(,"args":{"load":)"
                           << fixed(100 * sample.share, 1) << "}}";
    }
  }

  void write_left_out() {
    const auto count = std::ranges::count_if(
        trace_.events, [&](const Event& event) { return left_out_.contains(event.start); });
    if (count > 0)
      elements_.next() << R"({"ph":"i","s":"g","pid":)" << first_process_ << R"(,"tid":1,"ts":)"
                       << time(left_out_.from) << R"(,"name":"left out: )" << count
                       << R"( events until )" << time(left_out_.to) << R"( us"})";
  }

  /// Three flow events, each bound to the slice that encloses its time on its thread.
  void write_flow(std::size_t index) {
    const Event& event = trace_.events[index];
    const auto* sent = std::get_if<Action>(&event.cell);
    if (event.kind != TaskKind::Transfer || sent == nullptr || !sent->peer || !sent->microbatch)
      return;
    const auto from = maker_.find({sent->direction, sent->stage, *sent->microbatch});
    const auto to = maker_.find({sent->direction, *sent->peer, *sent->microbatch});
    if (from == maker_.end() || to == maker_.end()) return;
    const Event& maker = trace_.events[from->second];
    for (const Event* part : {&maker, &event, &trace_.events[to->second]})
      if (left_out_.contains(part->start)) return;
    const Nanoseconds inside = std::max(maker.start, maker.end - Nanoseconds{1});
    write_bound("s", tracks_[from->second], inside);
    write_bound("t", tracks_[index], event.start);
    write_bound("f", tracks_[to->second], trace_.events[to->second].start);
    ++flow_;
  }
  void write_bound(const char* phase, const Track& track, Nanoseconds at) {
    elements_.next() << R"({"ph":")" << phase << "\"," << place(track) << R"(,"ts":)" << time(at)
                     << R"(,"id":)" << flow_ << R"(,"name":"value","cat":"flow")"
                     << (*phase == 'f' ? R"(,"bp":"e"})" : "}");
  }

  Elements& elements_;
  const Trace& trace_;
  const LeftOut left_out_;
  std::string prefix_;
  std::size_t first_process_, flow_;
  std::vector<RankLanes> rows_;
  std::vector<Track> tracks_;  // [event]
  Nanoseconds origin_{0};
  std::map<Key, std::size_t> maker_;  // who makes the value or gradient of a stage and microbatch
};

}  // namespace

void write_chrome_trace(std::ostream& out, std::span<const Trace> traces, const std::string& title,
                        std::size_t most_events) {
  out << "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"title\":" << quoted(title)
      << "},\n\"traceEvents\":[";
  Elements elements(out);
  std::size_t process = 1, flow = 1;
  for (const Trace& trace : traces) {
    const std::string prefix = to_string(trace.source) + ": ";
    flow = Writer(elements, trace, left_out(trace, most_events), prefix, process, flow).write();
    process += trace.ranks + 1;  // the links'
  }
  out << "\n]}\n";
}

void write_chrome_trace(std::ostream& out, const Trace& trace, const std::string& title,
                        std::size_t most_events) {
  write_chrome_trace(out, std::span(&trace, 1), title, most_events);
}

}  // namespace pfeife
