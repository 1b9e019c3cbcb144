// A judge of certificates that shares no code with the search. The problem is defined by
// planner/cost (stage_costs, memory), lower and DependencyGraph; all else is computed here anew.
//
// The claim: for every listed schedule in its placement and all legal cuts of the layers (with the
// least loads that the proof names, if any, and whose neighbours are linked if it says so) and
// every choice of recomputed stages that `recompute` allows, the estimate, whose optimizer steps
// wait for `norm`, is at least `bound`, or some rank needs more memory than its limit. Why weights
// prove it: planner/search/bound/README.md.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "planner/cost/stages/stage_bounds.h"
#include "planner/inputs/plan_inputs.h"
#include "planner/ir/result/certificate.h"
#include "planner/ir/result/plan.h"

namespace pfeife::tool {

struct Verdict {
  std::string refusal;   ///< why the certificate does not prove its claim; "" = it does
  std::size_t cuts = 0;  ///< looked at one by one
};
/// `certificate` must be one that read_certificate returns, or as sound. The same for any number of
/// threads: proofs stand on their own.
Verdict certify(const Certificate& certificate, std::size_t threads = 1);

/// Whether a proof of it looks at memory: certify() then needs the temporaries of all stages.
bool looks_at_memory(const Certificate& certificate);
/// About the memory that certify() takes, beside the certificate itself.
Bytes certify_memory(const Certificate& certificate, std::size_t threads);

/// What the files that a plan names make otherwise than it says; "" = nothing.
std::string other_plan(const Plan& plan, const PlanInputs& inputs);

/// What the files that a plan names say of it and of its certificate, computed from them anew.
struct FromFiles {
  std::string missing;  ///< why nothing could be computed: one is not there, or another one
  std::string refusal;  ///< what they make otherwise than certificate or plan say; "" = nothing
};
/// `folder`: the plan's.
FromFiles compare_with_files(const Certificate& certificate, const Plan& plan,
                             const std::filesystem::path& folder);

/// Why the certificate does not speak of this plan: another model, cluster, devices, a schedule
/// that is not listed, cuts that cost something else, no bound or an absurd one. "" = it does.
std::string disagreement(const Certificate& certificate, const Plan& plan);

/// What the bound of `plan`, with which there must be no disagreement(), says beyond what an
/// accepted certificate proves: a later time, a schedule without a proof, a higher memory limit.
/// "" = nothing.
std::string unproven(const Certificate& certificate, const Plan& plan);

/// What the verb says.
struct Judged {
  std::string text;
  bool proven = false;  ///< all that the plan says, of costs that were computed from its files
};
using Announce = std::function<void(const std::string&)>;
/// Judges a plan.yaml with the certificate.txt beside it, the folder of both, or a certificate.txt
/// alone; tells `announce` beforehand if that takes much memory. Errors: ConfigError, also for what
/// is refused.
Judged certify_files(const std::filesystem::path& file, std::size_t threads,
                     const Announce& announce);

/// What was proven and how much was looked at, in words; of which part of the bound of `plan`
/// (nullptr = none). Decides nothing.
std::string summary(const Certificate& certificate, const Verdict& verdict, const Plan* plan);

}  // namespace pfeife::tool
