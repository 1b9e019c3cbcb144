// The planner's mesh beside the published one: same model, devices, sequences and global batch.
#pragma once

#include <optional>

#include "experiments/studies/published_runs/runs.h"
#include "planner/mesh/mesh_search.h"

namespace pfeife::published {

struct MeshOfRun {
  MeshRun run;
  Nanoseconds estimated{0};
  std::optional<Nanoseconds> simulated;  ///< on links that are shared; nothing without SimGrid
  Bytes peak{0};                         ///< largest over ranks

  /// The step as the best engine at hand has it.
  Nanoseconds step() const { return simulated.value_or(estimated); }
};

struct Match {
  MeshOfRun published, planned;
  bool fits = false;    ///< the published one, in its devices' memory
  bool slower = false;  ///< the planned one
};

/// What the planner is asked: the published run with its mesh, microbatch size, recomputation,
/// stages a rank and ZeRO left open. Where the run has no ZeRO, 0 and 1; else its own. Context
/// parallelism is open where attention is fused.
MeshQuestion question_of(const MeshRun& published);

/// Errors: ConfigError if no mesh fits.
Match match(const MeshRun& published, const Network& network, std::size_t threads);

}  // namespace pfeife::published
