// Times of the passes of steps: what a pass adds to a step, and how much that varies: what the
// passes of a step have in common, and what each has by itself. The two figures of Jitter
// (planner/ir/schedule/jitter.h), by a one-way analysis of variance.
//
// Not seen: what is slower than all of the measurement, and whether two machines drift apart.
#pragma once

#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// A pass is of a kind; those of a kind do the same work.
class StepTimes {
 public:
  struct Pass {
    std::size_t kind = 0;
    Nanoseconds time{0};
  };

  void begin_step() { steps_.emplace_back(); }
  void add(std::size_t kind, Nanoseconds time) { steps_.back().push_back({kind, time}); }
  /// As if the steps of `other` had been measured here, too.
  void append(const StepTimes& other) {
    steps_.insert(steps_.end(), other.steps_.begin(), other.steps_.end());
  }
  const std::vector<std::vector<Pass>>& steps() const { return steps_; }

  /// Median over the steps of the mean over a step's passes of a kind; 0 if there is none. A step
  /// is a sum, which means add up to; medians do not, where delays come one at a time. The median
  /// over steps keeps one accident out (median of means: Alon, Matias, Szegedy 1999).
  Nanoseconds typical(std::size_t kind) const;

  /// With m the mean of a pass's kind and the factor of a step = sum of its times / sum of their m:
  /// drift is the standard deviation of these factors, less what the mean over so many passes that
  /// vary by themselves leaves of those; cv is the standard deviation of time / m about the step's
  /// factor. Deviations are a normal variate's with the same 5th and 95th percentile: a single
  /// accident does not make all steps uncertain. At least two steps; every pass takes some time.
  MeasuredVariation found() const;

 private:
  std::vector<double> means() const;  // [kind] ns

  std::vector<std::vector<Pass>> steps_;
};

}  // namespace pfeife
