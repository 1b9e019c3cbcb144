// Plans that do not fit: which one lacks least, and how that is said.
#pragma once

#include "planner/search/search.h"

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

}  // namespace pfeife
