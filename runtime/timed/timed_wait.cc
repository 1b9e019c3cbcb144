#include "runtime/timed/timed_wait.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "runtime/transport/transport.h"

namespace pfeife {

void Lateness::add(const Lateness& other) {
  waits += other.waits;
  total += other.total;
  largest = std::max(largest, other.largest);
}

void sleep_until(Nanoseconds deadline, Lateness& lateness) {
  if (now() >= deadline) return;
  if (thread_clock != nullptr) {
    *thread_clock = deadline;
    return lateness.add({1, {}, {}});
  }
  // now() is CLOCK_MONOTONIC: std::chrono::steady_clock on Linux.
  const timespec at{static_cast<time_t>(deadline.count() / 1'000'000'000),
                    static_cast<long>(deadline.count() % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
  const Nanoseconds late = now() - deadline;
  lateness.add({1, late, late});
}

void wake_precisely() { prctl(PR_SET_TIMERSLACK, 1UL); }

}  // namespace pfeife
