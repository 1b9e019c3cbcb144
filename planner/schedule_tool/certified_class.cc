// What certificates prove together of all that a plan's bound covers.
#include <algorithm>

#include "planner/ir/error.h"
#include "planner/schedule_tool/any_devices.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

/// Whether the certificate has all schedules of so many microbatches that are of the family and
/// have the stages of `spec`: by a proof of them, or of any order of such stages.
bool has_schedules(const Certificate& certificate, ScheduleSpec spec, std::size_t microbatches) {
  spec = {.family = spec.family,
          .ranks = spec.ranks,
          .microbatches = microbatches,
          .loops = spec.loops,
          .loop_batch = {},
          .prefetch = {}};
  if (refusal(spec)) return true;  // there are none
  const auto rank_of_stage = placement_for(spec).rank_of_stage;
  return std::ranges::any_of(certificate.proofs, [&](const CertifiedProof& proof) {
    if (proof.any_order) return placement_for(proof.spec).rank_of_stage == rank_of_stage;
    return proof.spec.family == spec.family && proof.spec.loops == spec.loops;
  });
}

/// [device]
std::vector<Bytes> limits(const Certificate& c) {
  std::vector<Bytes> limit(c.cluster.devices(), Bytes{0});
  for (std::size_t r = 0; r < c.device_of_rank.size(); ++r)
    limit[c.device_of_rank[r].index()] = c.memory_limit[r];
  return limit;
}

/// Whether a certificate speaks of a problem of the plan that `own` speaks of, the order of the
/// devices apart.
bool speaks_of(const Certificate& c, const CoveredProblem& problem, const Certificate& own) {
  const auto its_microbatches = [&](const CertifiedProof& proof) {
    return proof.spec.microbatches == problem.microbatches;
  };
  return c.layers.digest == problem.model_digest && c.layers.order == problem.order &&
         (c.recompute == problem.recompute || c.recompute == Recompute::Choose) &&
         c.cluster == own.cluster && limits(c) == limits(own) &&
         std::ranges::all_of(c.proofs, its_microbatches) &&
         std::ranges::all_of(own.proofs, [&](const CertifiedProof& proof) {
           return has_schedules(c, proof.spec, problem.microbatches);
         });
}

/// What is proven of a problem of the plan that `certificates.front()` speaks of; 0 = nothing.
std::int64_t proven_of(const CoveredProblem& problem,
                       const std::vector<Certificate>& certificates) {
  const Certificate& own = certificates.front();
  std::int64_t best = 0, least = Certificate::kNothingFits;
  std::vector<std::vector<DeviceId>> orders;
  for (const Certificate& c : certificates) {
    if (!speaks_of(c, problem, own)) continue;
    if (c.any_devices || (!problem.any_devices && c.device_of_rank == own.device_of_rank))
      best = std::max(best, c.bound);
    orders.push_back(c.device_of_rank);
    least = std::min(least, c.bound);
  }
  if (problem.any_devices && least > best && every_order_listed(own.cluster, limits(own), orders))
    best = least;
  return best;
}

std::string microbatches_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " microbatch" : " microbatches");
}

std::string to_string(const CoveredProblem& problem) {
  return microbatches_text(problem.microbatches) + ", " + problem.order + " order" +
         (problem.any_devices ? ", any order of the devices" : "");
}

std::string bound_text(std::int64_t bound) {
  return bound == Certificate::kNothingFits
             ? "nothing fits"
             : "no plan is faster than " + pfeife::to_string(Nanoseconds{bound});
}

/// What one certificate claims.
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
      bound_text(certificate.bound), ": ", certificate.proofs.size(), " schedules of ",
      microbatches_text(spec.microbatches), " on ", spec.ranks, " devices, ",
      given ? "the only legal cuts of the " : "all legal cuts of the ", certificate.layers.order,
      " order of ", certificate.layers.size(), " layers",
      restricted ? " with at least the loads that it names" : "",
      linked ? ", each stage linked to the next by values and gradients" : "",
      certificate.recompute == Recompute::Full     ? ", every stage recomputed"
      : certificate.recompute == Recompute::Choose ? ", any choice of recomputed stages"
                                                   : "",
      certificate.any_devices ? ", whichever device runs which rank" : "", " (", regions,
      " regions, ", verdict.cuts, " cuts one by one)",
      any_order > 0
          ? stream_all("\n  of ", any_order, " of the schedules whatever the order of the actions")
          : "");
}

}  // namespace

Verdict certify(const Certificate& c) {
  Verdict verdict;
  const auto refuse = [&](const char* why) { return Verdict{why, verdict.cuts}; };
  if (c.bound <= 0 || c.proofs.empty() || c.device_of_rank.empty())
    return refuse("there is nothing to prove");
  const Certificate alike = c.any_devices ? alike_devices(c) : Certificate{};
  for (const CertifiedProof& proof : c.proofs) try {
      if (proof.shares.empty())
        verdict.cuts += check_tree(c.any_devices ? alike : c, proof);
      else if (!shared_work_suffices(c, proof))
        return refuse("work can be shared in less time than the bound");
    } catch (const ConfigError& error) {
      return refuse(error.what());
    }
  return verdict;
}

Proven proven(const std::vector<Certificate>& certificates, const Plan* plan) {
  Proven all{Certificate::kNothingFits, {}};
  if (plan == nullptr || plan->bound->problems.empty()) {
    const std::size_t count = plan == nullptr ? certificates.size() : 1;
    for (std::size_t k = 0; k < count; ++k) all.bound = std::min(all.bound, certificates[k].bound);
    return all;
  }
  for (const CoveredProblem& problem : plan->bound->problems) {
    const std::int64_t best = proven_of(problem, certificates);
    if (best == 0)
      all.missing.push_back(to_string(problem));
    else
      all.bound = std::min(all.bound, best);
  }
  return all;
}

bool proves_all_of(const Proven& proven, const Plan* plan) {
  return plan == nullptr || (proven.missing.empty() && plan->bound->time.count() <= proven.bound);
}

std::string summary(const std::vector<Certificate>& certificates,
                    const std::vector<Verdict>& verdicts, const Plan* plan) {
  const Proven all = proven(certificates, plan);
  std::string text;
  if (certificates.size() > 1)
    text = stream_all(bound_text(all.bound), ", whichever of these ", certificates.size(),
                      " problems it is of:\n");
  for (std::size_t k = 0; k < certificates.size(); ++k)
    text += (k > 0 ? "\n" : "") + claim_text(certificates[k], verdicts[k]);
  if (plan == nullptr) return text;
  for (const std::string& problem : all.missing)
    text += "\nTHE PLAN'S BOUND ALSO COVERS " + problem + ", OF WHICH NOTHING IS PROVEN";
  if (plan->bound->time.count() > all.bound)
    text += "\nTHE PLAN'S BOUND, " + pfeife::to_string(plan->bound->time) +
            ", IS HIGHER: what is above was not written down in a form that can be checked";
  return text;
}

}  // namespace pfeife::tool
