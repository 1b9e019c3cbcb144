#include "planner/ir/model/pass_steps.h"

#include <array>

namespace pfeife {

std::string to_string(WorkKind kind) {
  static constexpr std::array<const char*, kWorkKinds> kNames = {
      "compute", "weight gradient",    "dispatch",
      "combine", "tensor parallelism", "context parallelism",
      "weights"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool communicates(WorkKind kind) { return kind >= WorkKind::Dispatch; }

}  // namespace pfeife
