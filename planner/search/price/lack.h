// Why a plan is not the best: it lacks memory, and which one lacks least, or it is slower.
#pragma once

#include "planner/search/problem.h"

namespace pfeife {

/// Keeps in `closest` whichever lacks less memory.
inline void note_closest(const std::optional<Infeasible>& lack,
                         std::optional<Infeasible>& closest) {
  if (lack && (!closest || lack->needed - lack->available < closest->needed - closest->available))
    closest = lack;
}

inline std::string lack_text(const Infeasible& lack) {
  return "rank " + to_string(lack.rank) + " lacks " + to_string(lack.needed - lack.available);
}

/// The step of the best plan is no longer than anything that it allows.
inline std::string ruled_out_text(const std::string& bound = "") {
  return "its bound" + (bound.empty() ? "" : ", " + bound + ",") + " is not below the plan's time";
}

/// By how much the step takes longer than that of the chosen plan: "3.2 ms slower".
inline std::string slower_text(Nanoseconds more) {
  if (more == Nanoseconds{0}) return "as fast";
  return more > Nanoseconds{0} ? to_string(more) + " slower"
                               : to_string(-more) + " faster by estimate";
}

}  // namespace pfeife
