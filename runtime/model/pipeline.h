// A plan made executable: what all ranks of a pipeline agree on.
#pragma once

#include <span>
#include <vector>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/graph_split.h"
#include "planner/ir/schedule/schedule.h"
#include "runtime/model/operators.h"

namespace pfeife {

/// Data parallelism: equal pipelines, each with its share of a step's microbatches. A rank's number
/// is the sum of coordinate x stride: replica x stride() + pipeline rank x rank_stride().
struct ReplicaRanks {
  std::size_t count = 1;
  /// Ranks that hold the same stages are neighbours; else the ranks of a replica are.
  bool neighbours = true;
  /// 1: the optimizer's state of a stage is divided among the replicas (ZeRO 1). 0: each has all.
  int zero = 0;

  std::size_t stride(std::size_t pipeline_ranks) const { return neighbours ? 1 : pipeline_ranks; }
  std::size_t rank_stride() const { return neighbours ? count : 1; }
};

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
  ReplicaRanks replicas = {};

  /// The ranks of one replica, which placement, schedule and tasks speak of.
  std::size_t ranks() const { return placement.ranks(); }
  std::size_t all_ranks() const { return ranks() * replicas.count; }
  /// The number of a replica's rank among all ranks.
  RankId number(std::size_t replica, RankId rank) const {
    return RankId{replica * replicas.stride(ranks()) + rank.index() * replicas.rank_stride()};
  }
  std::size_t replica_of(RankId number) const {
    return number.index() / replicas.stride(ranks()) % replicas.count;
  }
  RankId pipeline_rank_of(RankId number) const {
    return RankId{number.index() / replicas.rank_stride() % ranks()};
  }
  /// The ranks of a replica, and the ranks that hold what `rank` holds in each replica.
  std::vector<RankId> replica_ranks(std::size_t replica) const;
  std::vector<RankId> copies_of(RankId rank) const;
};

/// Cuts the graph and judges the schedule. A compute-only schedule is lowered here, a lowered one
/// taken as it is. ConfigError with the judge's reasons if it is not right for the cut graph.
Pipeline make_pipeline(Graph graph, std::span<const NodeId> cuts, const Schedule& schedule,
                       const Placement& placement, Mode mode = Mode::Train);
/// Rows with REDUCE_NORM, if they have none.
void add_norm_reduction(Pipeline& pipeline);
/// The unsplit model on one rank, its microbatches one after another, its backward autograd's own:
/// what pipelines are compared with.
Pipeline unsplit_pipeline(Graph graph, std::size_t microbatches);

}  // namespace pfeife
