// Offsets x with sent + x[sender] <= received + x[receiver]: x[sender] - x[receiver] is at most
// received - sent. Those are difference constraints; the shortest paths among them say how far
// apart two clocks may be. Shortest distances from clock 0 satisfy them, so do those to it,
// negated; then their mean does, too, and so it does rounded down.
#include "planner/ir/trace/clock_offsets.h"

#include <algorithm>

namespace pfeife {
namespace {

constexpr std::int64_t kUnbounded = std::int64_t{1} << 61;

std::int64_t floor_half(std::int64_t value) { return value >> 1; }

}  // namespace

std::optional<std::vector<ClockOffset>> clock_offsets(std::size_t clocks,
                                                      std::span<const ClockBound> messages,
                                                      std::optional<std::size_t>& unbounded) {
  // most[a][b]: x[b] - x[a] is at most that
  std::vector<std::vector<std::int64_t>> most(clocks, std::vector(clocks, kUnbounded));
  for (std::size_t c = 0; c < clocks; ++c) most[c][c] = 0;
  for (const ClockBound& message : messages) {
    std::int64_t& bound = most[message.receiver][message.sender];
    bound = std::min(bound, (message.received - message.sent).count());
  }
  for (std::size_t via = 0; via < clocks; ++via)
    for (std::size_t a = 0; a < clocks; ++a)
      for (std::size_t b = 0; b < clocks; ++b)
        if (most[a][via] != kUnbounded && most[via][b] != kUnbounded)
          most[a][b] = std::min(most[a][b], most[a][via] + most[via][b]);
  std::vector<ClockOffset> offsets;
  for (std::size_t c = 0; c < clocks; ++c) {
    if (most[c][c] < 0) return std::nullopt;
    if (most[0][c] == kUnbounded || most[c][0] == kUnbounded) {
      unbounded = c;
      return std::nullopt;
    }
    const std::int64_t upper = most[0][c], lower = -most[c][0];
    offsets.push_back(
        {Nanoseconds{floor_half(upper + lower)}, Nanoseconds{floor_half(upper - lower + 1)}});
  }
  return offsets;
}

}  // namespace pfeife
