#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/json_fields.h"
#include "planner/io/results/chrome_trace.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

using namespace json_fields;

Nanoseconds nanoseconds(const Json& microseconds) {
  const double value = number(microseconds);
  if (std::abs(value) > 1e15) throw Malformed("a time of " + excerpt(microseconds) + " us");
  return Nanoseconds{std::llround(value * 1000)};
}

/// Numbers of ranks by process: "simulated: rank 3" is one of the source.
std::map<std::int64_t, std::size_t> ranks_of(const Json& events, TraceSource source) {
  const std::string prefix = to_string(source) + ": rank ";
  std::map<std::int64_t, std::size_t> ranks;
  for (const Json& event : events) {
    if (text(field(event, "ph")) != "M" || text(field(event, "name")) != "process_name") continue;
    const std::string name = text(field(field(event, "args"), "name"));
    if (name.starts_with(prefix) && name.size() < prefix.size() + 7)
      ranks[integer(field(event, "pid"))] = std::stoul("0" + name.substr(prefix.size()));
  }
  return ranks;
}

TaskKind kind_of(const std::string& category) {
  if (category == "transfer") return TaskKind::Transfer;
  if (category == "reduction") return TaskKind::Reduction;
  if (category == "copy") return TaskKind::Copy;
  return category == "optimizer" ? TaskKind::Optimizer : TaskKind::Compute;
}

Event event_of(const Json& slice, RankId rank) {
  const Json& arguments = field(slice, "args");
  const std::string action = text(field(arguments, "action"));
  const ParsedCell parsed = parse_cell(action);
  if (!parsed.cell) throw Malformed("an action '" + action + "'");
  Event event;
  event.kind = kind_of(text(field(slice, "cat")));
  event.rank = event.peer = rank;
  event.cell = *parsed.cell;
  event.start = nanoseconds(field(slice, "ts"));
  event.end = event.start + nanoseconds(field(slice, "dur"));
  event.posted = nanoseconds(field(arguments, "posted"));
  if (arguments.contains("launch")) event.launch = nanoseconds(arguments["launch"]);
  if (event.kind == TaskKind::Transfer)
    event.peer = RankId{static_cast<std::size_t>(integer(field(arguments, "to_rank")))};
  return event;
}

Trace trace_in(const Json& root, TraceSource source) {
  const Json& events = array(field(root, "traceEvents"));
  const auto ranks = ranks_of(events, source);
  Trace trace{.source = source};
  for (const auto& [process, rank] : ranks) trace.ranks = std::max(trace.ranks, rank + 1);
  if (trace.ranks > 1'000'000) throw Malformed("a rank beyond a million");
  trace.memory.resize(trace.ranks);
  std::map<std::string, std::size_t> index;  // by action
  std::vector<std::string> waited_for;
  for (const Json& event : events) {
    const std::string phase = text(field(event, "ph"));
    if (phase == "i") throw Malformed("left-out events; only a trace of all events can be drawn");
    if (!event.contains("pid") || !ranks.contains(integer(event["pid"]))) continue;
    const RankId rank{ranks.at(integer(event["pid"]))};
    if (phase == "C" && text(field(event, "name")) == "memory")
      trace.memory[rank.index()].push_back(
          {nanoseconds(field(event, "ts")), Bytes{integer(field(field(event, "args"), "bytes"))}});
    if (phase != "X") continue;
    const std::string action = text(field(field(event, "args"), "action"));
    const auto [known, added] = index.try_emplace(action, trace.events.size());
    if (!added) {
      trace.events[known->second].parties.push_back(rank);
      continue;
    }
    trace.events.push_back(event_of(event, rank));
    if (trace.events.back().kind == TaskKind::Reduction) trace.events.back().parties = {rank};
    const Json& arguments = field(event, "args");
    waited_for.push_back(arguments.contains("waited_for") ? text(arguments["waited_for"]) : "");
  }
  if (trace.events.empty()) throw Malformed("no " + to_string(source) + " actions");
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    if (const auto cause = index.find(waited_for[i]); cause != index.end())
      trace.events[i].waited_for = cause->second;
  for (const Event& event : trace.events)
    if (event.peer.index() >= trace.ranks)
      throw Malformed("a transfer to a rank that there is not");
  return trace;
}

}  // namespace

Trace read_trace(const std::filesystem::path& file, TraceSource source) {
  try {
    return trace_in(parse(read_file(file)), source);
  } catch (const Malformed& error) {
    throw ConfigError({file.string()}, std::string(error.what()) +
                                           "; expected a trace.json as pfeife-exp writes it");
  }
}

}  // namespace pfeife
