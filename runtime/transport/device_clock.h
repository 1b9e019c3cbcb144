// The time in the work of a device.
//
// Work is given to an accelerator ahead of time, so a clock of the host says when work was given,
// not when it was done. A mark is an event in the calling thread's stream; what lies between two
// marks is what the device did between them, and what it waited for.
#pragma once

#include <c10/core/Event.h>

#include <vector>

#include "planner/ir/basics/units.h"
#include "runtime/device/device.h"
#include "runtime/transport/transport.h"

namespace pfeife {

class DeviceClock {
 public:
  explicit DeviceClock(at::Device device) : device_(device) {}

  /// Marks this moment. On a CPU the result is the time; else a number which time() makes one.
  Nanoseconds mark() { return device_.is_cpu() ? now() : record(); }
  /// Waits for the device. From now on, time() knows the marks made since the last read().
  void read();
  /// The time of a mark that the last read() has read, from an unknown beginning.
  Nanoseconds time(Nanoseconds mark) const {
    return device_.is_cpu() ? mark : times_.at(static_cast<std::size_t>(mark.count()));
  }
  at::Device device() const { return device_; }

 private:
  Nanoseconds record();

  at::Device device_;
  std::vector<c10::Event> events_;  ///< made once, used again; the first used_ hold marks
  std::size_t used_ = 0;
  std::vector<Nanoseconds> times_;
};

}  // namespace pfeife
