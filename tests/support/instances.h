// How many random instances a test looks at.
#pragma once

#include <cstdlib>
#include <string>

namespace pfeife {

/// PFEIFE_INSTANCES of the environment, or `otherwise`.
inline std::size_t instances(std::size_t otherwise) {
  const char* const asked = std::getenv("PFEIFE_INSTANCES");
  return asked == nullptr ? otherwise : std::stoul(asked);
}

}  // namespace pfeife
