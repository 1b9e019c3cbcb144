// Bytes that differ between forward and the kinds of backward.
#pragma once

#include <algorithm>

#include "planner/ir/basics/units.h"

namespace pfeife {

struct PassBytes {
  Bytes forward{0};   ///< in F
  Bytes backward{0};  ///< in B
  Bytes input{0};     ///< in I
  Bytes weight{0};    ///< in W

  static constexpr PassBytes same(Bytes bytes) { return {bytes, bytes, bytes, bytes}; }
  constexpr Bytes largest() const { return std::max({forward, backward, input, weight}); }
  constexpr Bytes smallest() const { return std::min({forward, backward, input, weight}); }
  constexpr PassBytes& operator+=(const PassBytes& more) {
    forward += more.forward, backward += more.backward;
    input += more.input, weight += more.weight;
    return *this;
  }
  friend bool operator==(const PassBytes&, const PassBytes&) = default;
};

/// The larger of each.
constexpr PassBytes larger(const PassBytes& a, const PassBytes& b) {
  return {std::max(a.forward, b.forward), std::max(a.backward, b.backward),
          std::max(a.input, b.input), std::max(a.weight, b.weight)};
}

}  // namespace pfeife
