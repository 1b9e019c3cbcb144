#include "planner/io/results/chrome_trace_reader.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/json_fields.h"
#include "planner/ir/error.h"

namespace pfeife {
namespace {

using namespace json_fields;

Nanoseconds nanoseconds(const Json& microseconds) {
  const double value = number(microseconds);
  if (std::abs(value) > 1e15) throw Malformed("a time of " + excerpt(microseconds) + " us");
  return Nanoseconds{std::llround(value * 1000)};
}

/// Processes are the ranks of the source if they are named "estimated: rank 3" or the like.
std::set<std::int64_t> processes_of(const Json& events, TraceSource source) {
  std::set<std::int64_t> processes;
  for (const Json& event : events)
    if (text(field(event, "ph")) == "M" && text(field(event, "name")) == "process_name" &&
        text(field(field(event, "args"), "name")).starts_with(to_string(source) + ": "))
      processes.insert(integer(field(event, "pid")));
  return processes;
}

ActionTimes times_in(const Json& root, TraceSource source) {
  const Json& events = array(field(root, "traceEvents"));
  const auto processes = processes_of(events, source);
  ActionTimes times;
  Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min();
  for (const Json& event : events) {
    if (text(field(event, "ph")) != "X" || !processes.contains(integer(field(event, "pid"))))
      continue;
    const Nanoseconds start = nanoseconds(field(event, "ts")),
                      length = nanoseconds(field(event, "dur"));
    if (length < Nanoseconds{0}) throw Malformed("an action that ends before it starts");
    times.length[text(field(field(event, "args"), "action"))] = length;
    first = std::min(first, start);
    last = std::max(last, start + length);
  }
  if (times.length.empty()) throw Malformed("no " + to_string(source) + " actions");
  times.step = last - first;
  return times;
}

}  // namespace

ActionTimes read_action_times(const std::filesystem::path& file, TraceSource source) {
  try {
    return times_in(parse(read_file(file)), source);
  } catch (const Malformed& error) {
    throw ConfigError({file.string()}, std::string(error.what()) +
                                           ": expected a trace.json as pfeife-exp writes it");
  }
}

}  // namespace pfeife
