// The engine: runs a workload on SimGrid in this process, several times if asked. SimGrid and what
// it brings along take 25 ms to load, so the engine is a library of its own, loaded by the first
// simulation of a program.
//
// At most one engine may run in a process, ever. SimGrid's clock cannot be set back, and later runs
// see its coarser digits: when links are shared, an end that lies half-way between two nanoseconds
// may round the other way. A result is therefore a function of its inputs only if a fresh process
// makes the same runs before it; simulator.cc sees to that.
#pragma once

#include <functional>
#include <vector>

#include "sim/workload.h"

namespace pfeife {

/// What the engine asks and answers.
struct EngineWork {
  const Workload& workload;
  const Cluster& cluster;
  std::size_t ranks = 0;
  std::size_t runs = 1;
  /// How long a task is busy in a run.
  std::function<Nanoseconds(std::size_t run, std::size_t task)> busy;
  /// The end of every task in ns, -1 for those that never ran.
  std::function<void(std::size_t run, std::vector<std::int64_t> ends)> on_ends;
};

using RunEngine = void(const EngineWork&);

/// The engine, loaded if it is not yet. Errors: RuntimeFault if the program was built without
/// SimGrid, or if the library cannot be found or loaded.
RunEngine* load_engine();

}  // namespace pfeife

/// What the library exports.
extern "C" void pfeife_run_engine(const pfeife::EngineWork& work);
