// Clocks that do not agree, brought together by what must have come after what.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// A message: on clock `receiver` it was there at `received`, so that it was not sent after.
struct ClockBound {
  std::size_t sender = 0, receiver = 0;  ///< clocks
  Nanoseconds sent{0}, received{0};      ///< by the clock of each
};

/// What is added to a clock's times to have those of clock 0, and how far off that may be.
struct ClockOffset {
  Nanoseconds offset{0};
  Nanoseconds error{0};  ///< half of what messages in both directions leave open
  friend bool operator==(const ClockOffset&, const ClockOffset&) = default;
};

/// The middle of what the messages allow, for every clock; they allow all middles at once. None if
/// no offsets would let every message arrive after it was sent. `unbounded` is filled with a clock
/// that no chain of messages ties to clock 0 from both directions, and the offsets are none.
/// Cubic in clocks.
std::optional<std::vector<ClockOffset>> clock_offsets(std::size_t clocks,
                                                      std::span<const ClockBound> messages,
                                                      std::optional<std::size_t>& unbounded);

}  // namespace pfeife
