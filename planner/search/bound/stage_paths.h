// The paths behind stage_bound, step by step through a schedule, for certificates.
#pragma once

#include <span>
#include <vector>

#include "planner/ir/result/certificate.h"
#include "planner/ir/result/plan.h"
#include "planner/search/bound/stage_bound.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

/// The same paths as certificates have them. They also count what else the ranks do on the way.
std::vector<CertifiedPath> certified_paths(const Schedule& compute_only, const Placement& placement,
                                           std::span<const StagePath> paths);

/// Proves to the judge that no cuts of linked stages are below `bound`, which is not above
/// stage_bound() without latencies: the paths in turn, each of which takes from its stage what lies
/// behind.
CertifiedProof stage_proof(const Candidates& candidates, std::int64_t bound);

}  // namespace pfeife
