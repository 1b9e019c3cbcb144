// The one engine of a process: builds the platform that its job needs, then runs the job, several
// times if asked.
//
// SimGrid's clock cannot be set back, and later runs see its coarser digits: when links are shared,
// an end that lies half-way between two nanoseconds may round the other way. A result is therefore
// a function of the job only if a fresh process makes the same runs before it; simulator.cc sees to
// that.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/simulator.h"

namespace pfeife {

/// At most one in a process, ever. The job must outlive it.
class Engine {
 public:
  explicit Engine(const SimulationJob& job);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// End of every task in ns, -1 for those that never ran; with jitter if `repetition` is given.
  std::vector<std::int64_t> run(std::optional<std::uint64_t> repetition);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace pfeife
