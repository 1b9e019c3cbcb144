// Waiting to the microsecond without keeping a core busy: many waiting ranks share few cores.
#pragma once

#include <cstddef>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// How late the system woke a rank: what a measurement of waits cannot be better than.
struct Lateness {
  std::size_t waits = 0;
  Nanoseconds total{0}, largest{0};

  Nanoseconds mean() const {
    return waits == 0 ? Nanoseconds{0} : total / static_cast<std::int64_t>(waits);
  }
  void add(const Lateness& other);
};

/// Sleeps until now() is at least `deadline`, and notes how much later it was; not at all if that
/// has passed.
void sleep_until(Nanoseconds deadline, Lateness& lateness);

/// Asks the system not to gather wake-ups of this thread.
void wake_precisely();

}  // namespace pfeife
