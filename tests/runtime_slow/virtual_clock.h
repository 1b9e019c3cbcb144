// A rank's clock that only waits move: timed stages run at once, and take as long as they are told.
//
// Each rank, a thread, has one; messages carry the time of their sender over, and a wait for one
// moves the receiver's clock. So times are those of the dependencies alone: what threads and
// machine add is not there. Only over the in-process transport, and for one step: a second one
// would begin where rank 0 stands.
#pragma once

#include "runtime/transport/transport.h"

namespace pfeife {

/// now() of the calling thread while it lives.
class VirtualClock {
 public:
  VirtualClock() { thread_clock = &time_; }
  ~VirtualClock() { thread_clock = nullptr; }
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

 private:
  Nanoseconds time_{0};
};

}  // namespace pfeife
