// What a profiler's trace says: its events, and the time that they cover.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

// The events of a Chrome JSON trace, one after the other: what torch.profiler exports, and what
// pfeife writes. Read as a stream, so that a trace of gigabytes takes the memory of one event.

/// An element of "traceEvents", reduced to what is looked at here.
struct ProfilerEvent {
  char phase = 0;  ///< X complete, B and E its begin and end, M metadata
  std::string name, category;
  std::optional<Nanoseconds> start;  ///< behind ProfilerHead::base
  Nanoseconds duration{0};
  std::int64_t process = -1, thread = -1;  ///< -1 where they are no numbers
  std::string action;                      ///< args.action: what pfeife writes
  std::string label;                       ///< args.name of metadata
  std::int64_t external = -1;              ///< args["External id"]: an operator and its kernels
  std::vector<std::vector<std::int64_t>> dims;  ///< args["Input Dims"]; empty where no tensor is
  std::string type;                             ///< the first of args["Input type"]
};

/// What stands around the events.
struct ProfilerHead {
  std::optional<std::int64_t> rank;  ///< distributedInfo.rank
  Nanoseconds base{0};               ///< baseTimeNanoseconds: what the events' times count from
};

/// Calls `visit` for every event of the file, plain or gzip, in its order. Times are exact to the
/// nanosecond. Errors: ConfigError if the file ends too early, is no JSON, or has no events.
ProfilerHead read_profiler_events(const std::filesystem::path& file,
                                  const std::function<void(const ProfilerEvent&)>& visit);

// When something was at work: intervals, merged where they touch.

struct Interval {
  Nanoseconds start{0}, end{0};
};

class BusyTimes {
 public:
  /// Takes no room if the one before contains it, as an operator does those that it calls.
  void add(Interval interval);
  bool empty() const { return intervals_.empty(); }
  std::size_t size() const { return intervals_.size(); }
  /// From the first to the last within `range`, and how much of that is covered; none if there is
  /// nothing.
  struct Covered {
    Interval span;
    Nanoseconds busy{0};
  };
  std::optional<Covered> within(Interval range);

 private:
  void sort();
  std::vector<Interval> intervals_;
  bool sorted_ = true;
};

}  // namespace pfeife
