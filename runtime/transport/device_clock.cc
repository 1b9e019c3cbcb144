#include "runtime/transport/device_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>

namespace pfeife {

Nanoseconds DeviceClock::record() {
  if (used_ == events_.size())
    events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with the time
  events_[used_].record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return Nanoseconds{static_cast<std::int64_t>(used_++)};
}

void DeviceClock::read() {
  finish(device_);
  times_.assign(used_, Nanoseconds{0});
  for (std::size_t e = 1; e < used_; ++e) {  // one by one: a difference in ms is a 32-bit float
    const double ms = events_[e - 1].elapsedTime(events_[e]);
    times_[e] = times_[e - 1] + Nanoseconds{std::llround(ms * 1e6)};
  }
  used_ = 0;
}

}  // namespace pfeife
