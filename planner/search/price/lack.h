// Why a plan is not the best: it lacks memory, and which one lacks least, or it is slower.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Keeps in `closest` whichever lacks less memory.
inline void note_closest(const std::optional<Infeasible>& lack,
                         std::optional<Infeasible>& closest) {
  if (lack && (!closest || lack->lacking() < closest->lacking())) closest = lack;
}

inline Reason lacks(const Infeasible& lack) {
  return {.why = Why::LacksMemory, .rank = lack.rank, .lacking = lack.lacking()};
}

/// Its step takes so much longer than the plan's.
inline Reason slower_by(Nanoseconds more) { return {.why = Why::Slower, .slower = more}; }

inline Reason impossible(std::string rule) {
  return {.why = Why::Impossible, .words = std::move(rule)};
}

}  // namespace pfeife
