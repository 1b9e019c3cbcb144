// Whether a plan is one that a certificate speaks of.
#include <algorithm>

#include "planner/cost/estimator.h"
#include "planner/cost/memory.h"
#include "planner/cost/stage_costs.h"
#include "planner/ir/error.h"
#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {

std::string disagreement(const Certificate& certificate, const Plan& plan) {
  if (plan.model_digest != certificate.layers.digest || plan.order != certificate.layers.order)
    return "it is of another model or order";
  if (plan.cluster_digest != certificate.cluster.digest) return "it is of another cluster";
  if (!plan.bound) return "the plan names no bound";
  if (std::ranges::find(certificate.proofs, plan.spec, &CertifiedProof::spec) ==
      certificate.proofs.end())
    return "the plan's schedule (" + plan.spec.family + ") is not among the " +
           std::to_string(certificate.proofs.size()) + " that it covers";
  if (plan.placement.ranks() != certificate.device_of_rank.size() ||
      !illegal_because(certificate.layers, plan.partition).empty())
    return "it is of other ranks or cuts";
  const bool some = std::ranges::count(plan.recompute, true) > 0;
  const bool all = some && std::ranges::count(plan.recompute, false) == 0;
  if ((certificate.recompute == Recompute::None && some) ||
      (certificate.recompute == Recompute::Full && !all))
    return "it recomputes other stages";
  Placement placement = plan.placement;
  placement.device_of_rank = certificate.device_of_rank;
  const StageCosts costs = stage_costs(certificate.layers, plan.partition, placement,
                                       certificate.cluster, plan.recompute);
  const DependencyGraph graph = dependencies(plan.schedule, stage_graph(costs), placement, {});
  const auto run = estimate(graph, costs);
  const Trace* const trace = std::get_if<Trace>(&run);
  if (trace == nullptr || step_time(*trace) != plan.estimate)
    return "by its costs the plan takes " + (trace ? to_string(step_time(*trace)) : "forever") +
           ", the plan says " + to_string(plan.estimate);
  const std::vector<Bytes> peaks = peak_memory(plan.schedule, costs, placement);
  if (!std::ranges::equal(peaks, certificate.memory_limit, std::ranges::less_equal{}))
    return "by its costs the plan does not fit";
  if (plan.bound->time > plan.estimate) return "the plan's bound is above its own time";
  return "";
}

bool proves_all_of(const Certificate& certificate, const Plan* plan) {
  return plan == nullptr || plan->bound->time.count() <= certificate.bound;
}

std::string summary(const Verdict& verdict, const Certificate& certificate, const Plan* plan) {
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
  const ScheduleSpec& spec = certificate.proofs.front().spec;
  std::string text = stream_all(
      certificate.bound == Certificate::kNothingFits
          ? "nothing fits: "
          : "no plan is faster than " + to_string(Nanoseconds{certificate.bound}) + ": ",
      certificate.proofs.size(), " schedules of ", spec.microbatches, " microbatches on ",
      spec.ranks, " devices, ", given ? "the only legal cuts of the " : "all legal cuts of the ",
      certificate.layers.order, " order of ", certificate.layers.size(), " layers",
      restricted ? " with at least the loads that it names" : "",
      linked ? ", each stage linked to the next by values and gradients" : "",
      certificate.recompute == Recompute::Full     ? ", every stage recomputed"
      : certificate.recompute == Recompute::Choose ? ", any choice of recomputed stages"
                                                   : "",
      " (", regions, " regions, ", verdict.cuts, " cuts one by one)");
  const auto any_order = std::ranges::count(certificate.proofs, true, &CertifiedProof::any_order);
  if (any_order > 0)
    text += stream_all("\nof ", any_order, " of the schedules whatever the order of the actions");
  if (!proves_all_of(certificate, plan))
    text += "\nTHE PLAN'S BOUND, " + to_string(plan->bound->time) +
            ", IS HIGHER: what is above was not written down in a form that can be checked";
  if (plan != nullptr && plan->bound->time.count() < certificate.bound)
    text += "\nof the plan's own microbatch size, devices and order only: the plan's bound, " +
            to_string(plan->bound->time) +
            ", also covers what else was open, which no "
            "certificate proves";
  return text;
}

}  // namespace pfeife::tool
