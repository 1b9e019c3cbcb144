// Times of the passes of steps: what a pass adds to a step, and how much that varies: what the
// passes of a step have in common, and what each has by itself. The two figures of Jitter
// (planner/ir/schedule/jitter.h), by a one-way analysis of variance.
//
// Steps come in rounds, between which time passes: a machine that is slow is so for many steps, so
// a few rounds say little of how it will be next time, however many steps each has.
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

  void begin_round() { rounds_.push_back(steps_.size()); }
  /// Begins a step of the round that began last; the first step begins the first round.
  void begin_step() {
    if (rounds_.empty()) begin_round();
    steps_.emplace_back();
  }
  void add(std::size_t kind, Nanoseconds time) { steps_.back().push_back({kind, time}); }
  /// Adds the rounds of `other`.
  void append(const StepTimes& other);
  const std::vector<std::vector<Pass>>& steps() const { return steps_; }
  /// The first step of each round.
  const std::vector<std::size_t>& rounds() const { return rounds_; }

  /// Median over the steps of the mean over a step's passes of a kind; 0 if there is none. A step
  /// is a sum, which means add up to; medians do not, where delays come one at a time. The median
  /// over steps keeps one accident out (median of means: Alon, Matias, Szegedy 1999).
  Nanoseconds typical(std::size_t kind) const;

  /// With m the mean of a pass's kind and the factor of a step = sum of its times / sum of their m:
  /// cv is the standard deviation of time / m about the step's factor; drift is that of the factor
  /// of a step yet to come, from two parts. Within rounds: that of factors about their round's
  /// median, less what the mean over so many passes that vary by themselves leaves of it. Between
  /// R rounds: that of their medians, s, less what steps within a round leave of it, times
  /// sqrt(1 + 1 / R) t / z, with the 95th percentiles t of Student's distribution with R - 1
  /// degrees of freedom and z of the normal one: so wide is the interval that has the next round's
  /// factor with 90 % when R rounds are all that is known (Student's prediction interval).
  ///
  /// Deviations but s are a normal variate's with the same 5th and 95th percentile: a single
  /// accident does not make all steps uncertain. At least two steps; every pass takes some time.
  MeasuredVariation found() const;

 private:
  std::vector<double> means() const;  // [kind] ns

  std::vector<std::vector<Pass>> steps_;
  std::vector<std::size_t> rounds_;
};

}  // namespace pfeife
