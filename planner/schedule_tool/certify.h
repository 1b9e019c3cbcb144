// A judge of certificates that shares no code with the search. The problem is defined by
// planner/cost (stage_costs, memory), lower and DependencyGraph; all else is computed here anew.
//
// The claim: for every listed schedule in its placement and all legal cuts of the layers (with the
// least loads that the proof names, if any, and whose neighbours are linked if it says so) and
// every choice of recomputed stages that `recompute` allows, the estimate is at least `bound`, or
// some rank needs more memory than its limit. Why weights prove it: planner/search/README.md.
#pragma once

#include <string>
#include <vector>

#include "planner/cost/stage_bounds.h"
#include "planner/ir/certificate.h"
#include "planner/ir/plan.h"

namespace pfeife::tool {

struct Verdict {
  std::string refusal;   ///< why the certificate does not prove its claim; "" = it does
  std::size_t cuts = 0;  ///< looked at one by one
};
/// `certificate` must be one that read_certificate returns, or as sound. The same for any number of
/// threads: proofs stand on their own.
Verdict certify(const Certificate& certificate, std::size_t threads = 1);

/// Whether the model as a whole takes the bound (ns) or longer, as a proof that has no tree says.
bool whole_takes_the_bound(std::int64_t bound, const CertifiedProof& whole,
                           const Placement& placement, const StageBounds& bounds);

/// Why the certificate does not speak of this plan: another model, cluster, devices, a schedule
/// that is not listed, cuts that cost something else, no bound or an absurd one. "" = it does.
std::string disagreement(const Certificate& certificate, const Plan& plan);

/// What certificates that certify() accepts prove together.
struct Proven {
  std::int64_t bound = 0;  ///< ns; no plan of any of the problems is faster (or none fits)
  /// What the plan's bound covers and no certificate speaks of.
  std::vector<CoveredProblem> missing;
};
/// Of all that the bound of `plan` covers, if `plan` is not nullptr; the first certificate must
/// speak of it, and there must be no disagreement(). A certificate speaks of one of the plan's
/// problems if it is of the same cluster, of what may be recomputed there, and of all schedules
/// that the bound names (for other numbers of microbatches: of their families and loops); it holds
/// for an order of the devices if its ranks have, one by one, devices, paths and limits that are as
/// good.
Proven proven(const std::vector<Certificate>& certificates, const Plan* plan);
/// Whether `certificate` holds whichever of the devices of `own` runs which rank: its ranks have
/// devices that are all alike and as good as any of them, or it shares out their work.
bool of_any_devices(const Certificate& certificate, const Certificate& own);
/// False: `plan` (nullptr = none) names a higher bound, or one that covers more.
bool proves_all_of(const Proven& proven, const Plan* plan);
/// What was proven and how much was looked at ([certificate]); of which part of the bound of
/// `plan`. Decides nothing.
std::string summary(const std::vector<Certificate>& certificates,
                    const std::vector<Verdict>& verdicts, const Plan* plan);

}  // namespace pfeife::tool
