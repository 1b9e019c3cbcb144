// Medians of measured times.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// The middle of the times (of an even number, the mean of the two in the middle); 0 of none.
inline Nanoseconds median(std::vector<Nanoseconds> times) {
  if (times.empty()) return Nanoseconds{0};
  std::ranges::sort(times);
  const std::size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

/// Median absolute deviation from the median: half of the times are no further from it.
inline Nanoseconds spread(std::vector<Nanoseconds> times) {
  const Nanoseconds middle = median(times);
  for (Nanoseconds& time : times) time = std::chrono::abs(time - middle);
  return median(std::move(times));
}

/// How often the system has taken the core from this thread for others.
inline long interruptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/// Times of one thing, those during which the thread was interrupted told apart.
class Samples {
 public:
  void add(Nanoseconds time, bool interrupted) {
    (interrupted ? interrupted_ : clean_).push_back(time);
  }
  /// The samples that were not interrupted; all of them if those are fewer than five.
  std::vector<Nanoseconds> usable() const {
    if (clean_.size() >= 5) return clean_;
    std::vector<Nanoseconds> all = clean_;
    all.insert(all.end(), interrupted_.begin(), interrupted_.end());
    return all;
  }
  void append(const Samples& other) {
    clean_.insert(clean_.end(), other.clean_.begin(), other.clean_.end());
    interrupted_.insert(interrupted_.end(), other.interrupted_.begin(), other.interrupted_.end());
  }
  /// Calls each(time, interrupted) for every time.
  template <class Each>
  void for_each(const Each& each) const {
    for (const Nanoseconds time : clean_) each(time, false);
    for (const Nanoseconds time : interrupted_) each(time, true);
  }
  std::size_t interrupted() const { return interrupted_.size(); }
  std::size_t size() const { return clean_.size() + interrupted_.size(); }

 private:
  std::vector<Nanoseconds> clean_, interrupted_;
};
inline Nanoseconds median(const Samples& samples) { return median(samples.usable()); }
inline Nanoseconds spread(const Samples& samples) { return spread(samples.usable()); }

}  // namespace pfeife
