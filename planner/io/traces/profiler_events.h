// The events of a Chrome JSON trace, one after the other: what torch.profiler exports, and what
// pfeife writes. Read as a stream, so that a trace of gigabytes takes the memory of one event.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

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

}  // namespace pfeife
