// The engine: makes runs of a workload on SimGrid in this process.
//
// At most one engine may run in a process, ever. SimGrid's clock cannot be set back, and later runs
// see its coarser digits: when links are shared, an end that lies half-way between two nanoseconds
// may round the other way. A result is therefore a function of its inputs only if a fresh process
// makes the same runs before it; simulator.cc sees to that.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/ir/schedule/jitter.h"
#include "sim/workload.h"

namespace pfeife {

/// What the engine is asked for. Runs are numbered: 0 without jitter, k + 1 repetition k.
struct EngineWork {
  Workload workload;
  Jitter jitter;
  std::uint64_t first = 0, last = 1;   ///< the runs from `first` to before `last`
  std::optional<std::uint64_t> whole;  ///< the run of which every end is wanted; of others the last
};

/// Makes the runs, and passes on the end of every task in ns, -1 for those that never ran.
void run_engine(
    const EngineWork& work,
    const std::function<void(std::uint64_t run, std::vector<std::int64_t> ends)>& on_ends);

/// The bytes that are sent to the simulation server, a program of the same build. Errors of
/// reading: RuntimeFault if the bytes are another version's, or too few.
std::string to_bytes(const EngineWork& work);
EngineWork engine_work(std::string_view bytes);

}  // namespace pfeife
