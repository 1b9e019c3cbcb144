// A given mesh priced: the step and the memory of every pipeline rank, estimated.
//
// Ranks that differ in other coordinates than the pipeline's are alike: one of each stage stands
// for them. Gradients are reduced over dp when a rank has done its last backward, before its
// optimizer step, and not overlapped with anything of that rank; or stage by stage, each layer by
// layer from the stage's last backward on, beside whatever the rank still computes
// (MeshRun::overlap_reductions).
#pragma once

#include "planner/cost/estimate/evaluate.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {

/// Where a rank's time goes besides waiting, summed over its stages and a step.
struct MeshShares {
  Nanoseconds compute{0};      ///< forward and backward, what is recomputed included
  Nanoseconds collectives{0};  ///< of tp, cp and ep, exposed
  Nanoseconds reduction{0};    ///< of gradients over dp
  Nanoseconds exposed{0};      ///< of that, what goes on behind the rank's last backward
  Nanoseconds optimizer{0};
  friend bool operator==(const MeshShares&, const MeshShares&) = default;
};

struct MeshPrice {
  Prices plan;  ///< of one pipeline; estimate = a step
  Placement placement;
  Partition partition;
  std::vector<MeshShares> shares;  ///< [rank]
};

/// One device for each pipeline coordinate, with the links between them. Errors: ConfigError
/// without a place if neighbours are within a host in one pipeline and not in another one.
Cluster pipeline_cluster(const MeshRun& run, const Network& network);

/// Stages of contiguous transformer layers. The embedding and the head count as layers of their
/// own where stages are balanced: the slowest stage is then as fast as possible.
Partition mesh_partition(const MeshRun& run, const MeshLayers& pieces);

/// Errors: ConfigError of check_run(), of group_shape() and of the schedule's family.
MeshPrice price_mesh(const MeshRun& run, const Network& network);
/// The same with the mesh_layers() of the run at hand.
MeshPrice price_mesh(const MeshRun& run, const MeshLayers& pieces, const Network& network);

}  // namespace pfeife
