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

}  // namespace pfeife::tool
