// Memory of a rank by the rule of Pfeife (ICML 2025), for planner/search/reference and its study:
// buffers for all microbatches at once, the optimizer state of Adam for every parameter,
// activations and the largest temporary of a layer.
#pragma once

#include "planner/cost/estimate/memory.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Which rule charges memory.
enum class MemoryRule {
  Lifetimes,  ///< memory.h
  Reference,  ///< this header
};

/// [stage] the largest temporary of its layers, in any action.
std::vector<Bytes> largest_temporaries(const Layers& layers, const Partition& partition);

/// memory() by this rule; `temporary` = largest_temporaries().
MemoryCurve reference_memory(const Schedule& lowered, RankId rank, const StageCosts& costs,
                             const Placement& placement, const std::vector<Bytes>& temporary);

/// reference_memory(...).peak() of every rank.
std::vector<Bytes> reference_peak_memory(const Schedule& lowered, const StageCosts& costs,
                                         const Placement& placement,
                                         const std::vector<Bytes>& temporary);

}  // namespace pfeife
