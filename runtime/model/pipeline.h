// A plan made executable: what all ranks of a pipeline agree on.
#pragma once

#include <span>
#include <vector>

#include "planner/ir/dependency_graph.h"
#include "planner/ir/schedule.h"
#include "runtime/model/graph_split.h"

namespace pfeife {

/// Equal on all ranks.
struct Pipeline {
  Graph graph;
  std::vector<NodeEffects> effects;
  GraphSplit split;
  StageGraph stages;
  Placement placement;
  std::size_t microbatches = 0;
  Schedule schedule;  ///< lowered
  DependencyGraph tasks;
  bool plain_backward = false;  ///< by autograd's own functions, see StageOptions

  std::size_t ranks() const { return placement.ranks(); }
};

/// Cuts the graph and judges the schedule. A compute-only schedule is lowered here, a lowered one
/// taken as it is. ConfigError with the judge's reasons if it is not right for the cut graph.
Pipeline make_pipeline(Graph graph, std::span<const NodeId> cuts, const Schedule& schedule,
                       const Placement& placement);
/// The unsplit model on one rank, its microbatches one after another, its backward autograd's own:
/// what pipelines are compared with.
Pipeline unsplit_pipeline(Graph graph, std::size_t microbatches);

}  // namespace pfeife
