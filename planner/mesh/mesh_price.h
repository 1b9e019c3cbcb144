// A given mesh priced: the step and the memory of every pipeline rank, estimated.
//
// Ranks that differ in other coordinates than the pipeline's are alike: one of each stage stands
// for them. Gradients are reduced over dp when a rank has done its last backward, before its
// optimizer step, and not overlapped with anything of that rank.
#pragma once

#include "planner/cost/evaluate.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Where a rank's time goes besides waiting, summed over its stages and a step.
struct MeshShares {
  Nanoseconds reduction{0};  ///< of gradients over dp
  Nanoseconds optimizer{0};
  friend bool operator==(const MeshShares&, const MeshShares&) = default;
};

struct MeshPrice {
  EvaluatedPlan plan;  ///< of one pipeline; estimate = a step
  Placement placement;
  Partition partition;
  std::vector<MeshShares> shares;  ///< [rank]
};

/// One device for each pipeline coordinate, with the links between them.
Cluster pipeline_cluster(const Mesh& mesh, const Network& network);

/// Errors: ConfigError of check_run(), of group_shape() and of the schedule's family.
MeshPrice price_mesh(const MeshRun& run, const Network& network);

}  // namespace pfeife
