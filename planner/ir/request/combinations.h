// What a request cannot ask for together, and why: one table, which check() goes through and
// configs/reference/combinations.md prints.
#pragma once

#include <span>

#include "planner/ir/request/request.h"

namespace pfeife {

struct RefusedCombination {
  const char* key;                ///< the config's key that is refused, "plan.slices"
  const char* beside;             ///< what it cannot stand beside: "plan.for"
  const char* reason;             ///< with the remedy
  bool (*asked)(const Request&);  ///< both are asked for
  const char* value = "";         ///< of the key, which is refused; "" = any
};

/// In the order in which they are looked for.
std::span<const RefusedCombination> refused_combinations();

}  // namespace pfeife
