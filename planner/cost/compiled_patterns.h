// Estimates of one schedule for many cuts, as a search asks for them.
#pragma once

#include <list>
#include <optional>

#include "planner/cost/compute_order.h"
#include "planner/cost/estimator.h"
#include "planner/ir/dependency_graph.h"

namespace pfeife {

/// Stages that share no parameters need no graph. Of others, which of them exchange values decides
/// the dependencies, and neighbouring cuts mostly agree on it: so the compiled graphs of the
/// patterns that were asked for last are kept.
class CompiledPatterns {
 public:
  /// The estimate that evaluate() gives, of the costs of some cuts; `compute_only` and `placement`
  /// must be the same in every call. Errors: as lower().
  Nanoseconds estimate(const Schedule& compute_only, const Placement& placement,
                       const StageCosts& costs);

 private:
  struct Pattern {
    StageGraph stages;
    std::vector<DurationSlot> slots;
    CompiledGraph graph;
  };
  const Pattern& pattern(const Schedule& compute_only, const Placement& placement,
                         const StageCosts& costs);

  std::optional<ComputeOrder> order_;
  std::list<Pattern> known_;  // the last one asked for first
};

}  // namespace pfeife
