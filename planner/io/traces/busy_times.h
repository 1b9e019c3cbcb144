// When something was at work: intervals, merged where they touch.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

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
