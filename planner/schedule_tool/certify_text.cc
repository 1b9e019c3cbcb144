// What certificates prove, in words. Decides nothing.
#include <algorithm>

#include "planner/ir/error.h"
#include "planner/ir/round_down.h"
#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

std::string microbatches_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " microbatch" : " microbatches");
}

std::string to_string(const CoveredProblem& problem) {
  return microbatches_text(problem.microbatches) + ", " + problem.order + " order" +
         (problem.recompute == Recompute::Full     ? ", every stage recomputed"
          : problem.recompute == Recompute::Choose ? ", any choice of recomputed stages"
                                                   : "") +
         (problem.any_devices ? ", any order of the devices" : "");
}

std::string bound_text(std::int64_t bound) {
  return bound == Certificate::kNothingFits
             ? "nothing fits"
             : "no plan is faster than " + pfeife::to_string(rounded_down(Nanoseconds{bound}, 4));
}

/// What one certificate claims; `any_devices`: of any order of them.
std::string claim_text(const Certificate& certificate, bool any_devices, const Verdict& verdict) {
  const bool restricted = std::ranges::any_of(certificate.proofs, [](const CertifiedProof& proof) {
    return std::ranges::any_of(proof.least_load, [](std::int64_t load) { return load > 0; });
  });
  const bool linked = std::ranges::any_of(certificate.proofs, &CertifiedProof::linked);
  const auto cuts = std::ranges::count(certificate.layers.layers, "", &Layer::no_cut_after) -
                    certificate.layers.layers.back().no_cut_after.empty();
  const bool given = std::ranges::all_of(certificate.proofs, [&](const CertifiedProof& proof) {
    return proof.spec.stages() == static_cast<std::size_t>(cuts) + 1;
  });
  std::size_t regions = 0;
  for (const CertifiedProof& proof : certificate.proofs) regions += proof.tree.size();
  const auto any_order = std::ranges::count(certificate.proofs, true, &CertifiedProof::any_order);
  const ScheduleSpec& spec = certificate.proofs.front().spec;
  return stream_all(
      bound_text(certificate.bound), ": ", certificate.proofs.size(), " schedules of ",
      microbatches_text(spec.microbatches), " on ", spec.ranks,
      spec.ranks == 1 ? " device, " : " devices, ",
      given ? "the only legal cuts of the " : "all legal cuts of the ", certificate.layers.order,
      " order of ", certificate.layers.size(), " layers",
      restricted ? " with at least the loads that it names" : "",
      linked ? ", each stage linked to the next by values and gradients" : "",
      certificate.recompute == Recompute::Full     ? ", every stage recomputed"
      : certificate.recompute == Recompute::Choose ? ", any choice of recomputed stages"
                                                   : "",
      any_devices ? ", whichever device runs which rank" : "", " (", regions, " regions, ",
      verdict.cuts, " cuts one by one)",
      any_order > 0
          ? stream_all("\n  of ", any_order, " of the schedules whatever the order of the actions")
          : "");
}

}  // namespace

std::string summary(const std::vector<Certificate>& certificates,
                    const std::vector<Verdict>& verdicts, const Plan* plan) {
  const Proven all = proven(certificates, plan);
  std::string text;
  if (certificates.size() > 1)
    text = all.missing.empty() ? stream_all(bound_text(all.bound), ", whichever of these ",
                                            certificates.size(), " problems it is of:\n")
                               : stream_all("of ", certificates.size(),
                                            " problems, which are not "
                                            "all that the plan's bound covers:\n");
  const bool open =
      plan != nullptr && std::ranges::any_of(plan->bound->problems, &CoveredProblem::any_devices);
  for (std::size_t k = 0; k < certificates.size(); ++k)
    text += (k > 0 ? "\n" : "") +
            claim_text(certificates[k], open && of_any_devices(certificates[k], certificates[0]),
                       verdicts[k]);
  if (plan == nullptr) return text;
  for (const CoveredProblem& problem : all.missing)
    text += "\nTHE PLAN'S BOUND ALSO COVERS " + to_string(problem) + ", OF WHICH NOTHING IS PROVEN";
  if (plan->bound->time.count() > all.bound)
    text += stream_all("\nTHE PLAN'S BOUND IS ", plan->bound->time.count() - all.bound,
                       " ns HIGHER: that was not written down in a form that can be checked");
  return text;
}

}  // namespace pfeife::tool
