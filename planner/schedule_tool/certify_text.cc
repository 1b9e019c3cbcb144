// What a certificate proves, in words. Decides nothing.
#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/round_down.h"
#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

std::string microbatches_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " microbatch" : " microbatches");
}

std::string bound_text(std::int64_t bound) {
  return bound == Certificate::kNothingFits
             ? "nothing fits"
             : "no plan is faster than " + to_string(rounded_down(Nanoseconds{bound}, 4));
}

/// "within 21.9 to 39.5 GiB a rank"
std::string limits_text(const std::vector<Bytes>& limits) {
  if (limits.empty()) return "";
  const auto [least, most] = std::ranges::minmax(limits);
  return "within " + (least == most ? "" : to_string(least) + " to ") + to_string(most) + " a rank";
}

std::string claim_text(const Certificate& certificate, const Verdict& verdict) {
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
      bound_text(certificate.bound), ": ", certificate.proofs.size(),
      certificate.proofs.size() == 1 ? " schedule of " : " schedules of ",
      microbatches_text(spec.microbatches), " on ", spec.ranks,
      spec.ranks == 1 ? " device, " : " devices, ",
      given ? "the only legal cuts of the " : "all legal cuts of the ", certificate.layers.order,
      " order of ", certificate.layers.size(), " layers ", limits_text(certificate.memory_limit),
      restricted ? " with at least the loads that it names" : "",
      linked ? ", each stage linked to the next by values and gradients" : "",
      certificate.recompute == Recompute::Full     ? ", every stage recomputed"
      : certificate.recompute == Recompute::Choose ? ", any choice of recomputed stages"
                                                   : "",
      " (", regions, " regions, ", verdict.cuts, " cuts one by one)",
      any_order > 0
          ? stream_all("\n  of ", any_order, " of the schedules whatever the order of the actions")
          : "");
}

}  // namespace

std::string summary(const Certificate& certificate, const Verdict& verdict, const Plan* plan) {
  std::string text = claim_text(certificate, verdict);
  if (plan == nullptr) return text;
  if (const std::string reason = unproven(certificate, *plan); !reason.empty())
    text += "\nNOT PROVEN: " + reason;
  if (!plan->bound->uncertified.empty())
    text += stream_all("\nnot certified: that the plan's bound, ",
                       to_string(rounded_down(plan->bound->time, 4)), ", holds for ",
                       plan->bound->uncertified);
  return text;
}

}  // namespace pfeife::tool
