// Random moves of cuts: what annealing tries.
#pragma once

#include <cstdint>

#include "planner/search/price/cut_model.h"

namespace pfeife {

/// xorshift64*: small, fast and the same everywhere, unlike the standard distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567ULL) {}
  std::uint64_t next() {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return (state_ * 0x2545F4914F6CDD1DULL) >> 16;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  double unit() { return static_cast<double>(next() & 0xFFFFFFFF) / 4294967296.0; }
  /// 1, 2, 3, ... with falling chances, at most `most`; either sign.
  std::int32_t step(std::int32_t most) {
    std::int32_t size = 1;
    while (size < most && next() % 4 != 0) ++size;
    return next() % 2 == 0 ? size : -size;
  }

 private:
  std::uint64_t state_;
};

/// Moves of one cut, of two, or of a row of neighbouring cuts.
///
/// A row moves by as much time, or by as much memory, as one of its ends: the stages between its
/// cuts stay as long, or as large, and only the two around the row change. Often these two are of
/// one rank: then no rank has to hold more than before, by and large.
class CutMoves {
 public:
  /// Keeps a reference to `model`.
  CutMoves(const CutModel& model, const Placement& placement);

  /// `cuts` themselves if what was tried would not be in order. At least two stages.
  Cuts random(const Cuts& cuts, Random& random) const;

 private:
  struct Row {
    std::size_t first, last;  // cuts
  };
  Row random_row(std::size_t cuts, Random& random) const;
  void shift(Cuts& cuts, Row row, Random& random) const;

  std::vector<const std::vector<double>*> lengths_;  // prefix sums at the positions
  std::vector<Row> within_rank_;                     // between two stages of one rank
};

}  // namespace pfeife
