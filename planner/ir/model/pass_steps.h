// The steps of a layer's forward and backward: what it computes and which collectives it waits for,
// in order. Layers::steps has them where the costs of actions side by side need them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// What a piece of work is for.
enum class WorkKind : std::uint8_t {
  Compute,
  WeightGradient,
  Dispatch,  ///< tokens to the ranks of their experts, and its backward
  Combine,   ///< back from them, and its backward
  Tensor,    ///< collectives along tp
  Context,   ///< along cp
  Weights    ///< gathers and reductions of divided parameters
};
inline constexpr std::size_t kWorkKinds = 7;

std::string to_string(WorkKind kind);  ///< "compute", "weight gradient", "dispatch", ...
bool communicates(WorkKind kind);

/// Forward passes a layer's steps in order, backward in the opposite order. A step of compute has a
/// weight gradient, too, for which nothing of the same backward waits.
struct PassStep {
  WorkKind kind = WorkKind::Compute;
  Nanoseconds forward{0}, backward{0}, weight{0};
  friend bool operator==(const PassStep&, const PassStep&) = default;
};

}  // namespace pfeife
