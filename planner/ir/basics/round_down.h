// Lower bounds for people: what is rounded to the nearest may say more than is proven.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "planner/ir/basics/decimals.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

/// The largest time of so many significant digits that is not above `time`, which is not negative.
inline Nanoseconds rounded_down(Nanoseconds time, int digits) {
  std::int64_t least = 1, place = 1;  // the smallest number of so many digits
  for (int d = 1; d < digits; ++d) least *= 10;
  while (time.count() / place >= 10 * least) place *= 10;
  return Nanoseconds{time.count() / place * place};
}

/// Decimals of a time in ms in tables: five digits from 1 ms on, so that plans which differ little
/// can be told apart.
inline int table_decimals(Nanoseconds time) {
  const auto ms = time.count() / 1'000'000;
  return ms >= 1000 ? 1 : ms >= 100 ? 2 : ms >= 10 ? 3 : 4;
}

/// A lower bound as tables show it, cut to their decimals; beside a plan of `step` that is no
/// slower than it the bound itself, so that both read the same.
inline Nanoseconds bound_in_tables(Nanoseconds bound, std::optional<Nanoseconds> step) {
  if (bound == step) return bound;
  std::int64_t place = 1'000'000;
  for (int d = table_decimals(bound); d > 0; --d) place /= 10;
  return Nanoseconds{bound.count() / place * place};
}

/// How far a plan is above its bound, in per cent: "0" only where it is no slower at all, and more
/// than one decimal where one would show the same.
inline std::string gap_text(double fraction) {
  if (fraction == 0) return "0";
  if (fraction < 0.0001) return "<0.01";
  return fixed(100 * fraction, fraction < 0.0005 ? 2 : 1);
}

}  // namespace pfeife
