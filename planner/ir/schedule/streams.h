// Work on the streams of one device: when each piece runs, and what of the communication runs while
// nothing computes.
//
// Not modelled: that kernels of two streams slow each other down.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/ir/model/pass_steps.h"

namespace pfeife {

inline constexpr std::uint32_t kComputeStream = 0, kCommunicationStream = 1;

/// A piece of work. A stream runs one piece at a time, to its end.
struct WorkPiece {
  WorkKind kind = WorkKind::Compute;
  std::uint32_t stream = kComputeStream;
  Nanoseconds time{0};
  std::vector<std::uint32_t> after;  ///< earlier pieces of the list that must have ended
};

struct StreamTimes {
  Nanoseconds span{0};             ///< until the last piece has ended
  std::vector<Nanoseconds> begin;  ///< [piece]
  std::vector<Nanoseconds> busy;   ///< [stream]
  /// How long some stream computes, some stream communicates, and both at once.
  Nanoseconds computing{0}, communicating{0}, both{0};
  /// [WorkKind] How long communication of that kind runs while nothing computes; of two streams
  /// that communicate at once, the lower one counts.
  std::array<Nanoseconds, kWorkKinds> exposed{};
};

/// List scheduling: a free stream at once begins the ready piece with the longest way to the end of
/// the program, its own time included; of equals the first in the list. All pieces that end at a
/// moment have ended before any begins. n pieces take O(n log n + n streams).
StreamTimes run_streams(std::span<const WorkPiece> program);

}  // namespace pfeife
