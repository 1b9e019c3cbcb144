// Seeded random variation of durations: the same numbers on every machine, and for every engine
// that runs the same DependencyGraph.
//
// A factor depends on (seed, repetition, task) only, not on the order of events. It is log-normal
// with mean 1 and the given coefficient of variation; the normal variate is the sum of twelve
// uniform ones, and exp is computed here by basic operations, so that no mathematical library
// enters.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/ir/cluster.h"
#include "planner/ir/dependency_graph.h"
#include "planner/ir/schedule.h"
#include "planner/ir/units.h"

namespace pfeife {

/// Coefficient of variation (standard deviation / mean) of every compute and transfer time; 0 =
/// none.
struct Jitter {
  double cv = 0;  ///< in [0, 1]
  std::uint64_t seed = 1;
  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// Draws the factors of one run.
class JitterSource {
 public:
  JitterSource(const Jitter& jitter, std::uint64_t repetition);
  /// `time` of a task times its factor, rounded once.
  Nanoseconds vary(Nanoseconds time, std::uint64_t task) const;
  double factor(std::uint64_t task) const;

 private:
  std::uint64_t key_;
  double sigma_ = 0;  // of the logarithm
  double mean_ = 1;   // of the factor before it is divided by it
};

/// How much of a task that takes `time` alone varies: all of a computation; of a transfer what
/// comes after the latency (1 ns at least); nothing of reductions and optimizer steps.
Nanoseconds varying_time(const Task& task, Nanoseconds time, const Placement& placement,
                         const Cluster& cluster);

/// The smallest of `times` that at least the share `p` of them does not exceed (nearest rank; p =
/// 0.5: median). `times` must not be empty.
Nanoseconds quantile(std::vector<Nanoseconds> times, double p);

}  // namespace pfeife
