// A mesh is chosen first; what is asked of its pipeline is then a request like any other.
#pragma once

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/request/request.h"

namespace pfeife {

/// What is asked of the mesh of `request`, which has one: of what its question leaves open, what
/// `plan.for` can run; and the memory limits of its pipeline.
MeshQuestion mesh_question(const Request& request);

/// The request for one pipeline of `run`, the mesh that was chosen for `mesh_request`. A microbatch
/// is that of all replicas together, and the mesh file has the replicas. Families, stages a rank,
/// recomputation and baselines are as usual on a mesh where `mesh_request` does not say them.
Request pipeline_request(const Request& mesh_request, const MeshRun& run);

/// The run as one pipeline of it is planned: with stages that take equally long, on one rank each,
/// and nothing recomputed, which the planner chooses anew.
MeshRun pipeline_run(MeshRun run);

}  // namespace pfeife
