// Seeded random variation of durations: the same numbers on every machine, and for every engine
// that runs the same DependencyGraph.
//
// Two factors, as of a machine: one of each task (an interruption, a cache that was cold), which
// averages out over a step, and one of all computations of a repetition together (a machine that is
// slower for seconds), which does not. A factor depends on (seed, repetition, task) only, not on
// the order of events. It is log-normal with mean 1 and the given coefficient of variation; the
// normal variate is the sum of twelve uniform ones, and exp is computed here by basic operations,
// so that no mathematical library enters. Not modelled: devices that are slow each at a time of its
// own.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Coefficients of variation (standard deviation / mean) in [0, 1]; 0 = none.
struct Jitter {
  double cv = 0;  ///< of each compute and transfer time by itself
  std::uint64_t seed = 1;
  double drift = 0;  ///< of the factor that all computations of a repetition share
  bool varies() const { return cv > 0 || drift > 0; }
  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// A log-normal variate of mean 1.
class LogNormal {
 public:
  explicit LogNormal(double cv);           ///< coefficient of variation in [0, 1]
  double draw(std::uint64_t state) const;  ///< the same for the same state; 1 if cv = 0

 private:
  double sigma_ = 0;  // of the logarithm
  double mean_ = 1;   // of the factor before it is divided by it
};

/// Draws the factors of one run.
class JitterSource {
 public:
  JitterSource(const Jitter& jitter, std::uint64_t repetition);
  /// `time` of a task times its factors, rounded once: its own if it is a computation or a
  /// transfer, the common one if it is a computation or an optimizer step.
  Nanoseconds vary(Nanoseconds time, std::uint64_t task, TaskKind kind) const;
  double factor(std::uint64_t task) const;  ///< of a task by itself

 private:
  std::uint64_t key_;
  LogNormal own_;
  double common_ = 1;
  bool varies_ = false;
};

/// How much of a task that takes `time` alone varies: all of a computation and of an optimizer step
/// (with the common factor only); of a transfer what comes after the latency (1 ns at least);
/// nothing of reductions.
Nanoseconds varying_time(const Task& task, Nanoseconds time, const Placement& placement,
                         const Cluster& cluster);

/// The smallest of `times` that at least the share `p` of them does not exceed (nearest rank; p =
/// 0.5: median). `times` must not be empty.
Nanoseconds quantile(std::vector<Nanoseconds> times, double p);

}  // namespace pfeife
