// Whether a plan is one that a certificate speaks of, and all that its bound covers is proven.
#include <algorithm>

#include "planner/cost/evaluate.h"
#include "planner/cost/stage_costs.h"
#include "planner/ir/error.h"
#include "planner/ir/validate.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {

std::string disagreement(const Certificate& c, const Plan& plan) {
  const auto recomputed = std::ranges::count(plan.recompute, true);
  const Placement placement{plan.placement.rank_of_stage, c.device_of_rank};
  if (plan.model_digest != c.layers.digest || plan.order != c.layers.order)
    return "it is of another model or order";
  if (plan.cluster_digest != c.cluster.digest) return "it is of another cluster";
  if (!plan.bound || plan.bound->schedules.empty()) return "the plan names no bound of schedules";
  if (std::ranges::find(c.proofs, plan.spec, &CertifiedProof::spec) == c.proofs.end())
    return "the plan's schedule (" + plan.spec.family + ") is not among those that it covers";
  if (plan.placement.ranks() != placement.ranks() ||
      plan.bound->memory_limit.size() != placement.ranks() ||
      !illegal_because(c.layers, plan.partition).empty())
    return "it is of other ranks or cuts";
  if ((c.recompute == Recompute::None && recomputed > 0) ||
      (c.recompute == Recompute::Full &&
       recomputed < static_cast<std::ptrdiff_t>(placement.stages())))
    return "it recomputes other stages";
  const StageCosts costs =
      stage_costs(c.layers, plan.partition, placement, c.cluster, plan.recompute);
  const auto wrong = validate(plan.schedule, {stage_graph(costs), plan.spec.microbatches});
  if (!wrong.empty()) return "its schedule is wrong: " + wrong.front().message;
  const EvaluatedPlan found = evaluate_lowered(costs, plan.schedule, placement);
  if (found.estimate != plan.estimate)
    return stream_all("by its costs the plan takes ", found.estimate.count(), " ns, the plan says ",
                      plan.estimate.count());
  if (!std::ranges::equal(found.peak_memory, plan.bound->memory_limit, std::ranges::less_equal{}))
    return "by its costs the plan does not fit";
  if (plan.bound->time > plan.estimate) return "the plan's bound is above its own time";
  return "";
}

std::string unproven(const Certificate& c, const Plan& plan) {
  const auto proven = [&](const ScheduleSpec& spec) {
    return !refusal(spec) && std::ranges::any_of(c.proofs, [&](const CertifiedProof& proof) {
      if (!proof.any_order) return proof.spec == spec;
      return proof.spec.microbatches == spec.microbatches &&
             placement_for(proof.spec).rank_of_stage == placement_for(spec).rank_of_stage;
    });
  };
  const auto missing = std::ranges::find_if_not(plan.bound->schedules, proven);
  if (missing != plan.bound->schedules.end())
    return stream_all("the plan's bound also covers ", missing->family, " with ", missing->loops,
                      " stages a rank, of which nothing is proven");
  if (!std::ranges::equal(plan.bound->memory_limit, c.memory_limit, std::ranges::less_equal{}))
    return "the plan's bound holds up to higher memory limits than are proven";
  if (plan.bound->time.count() > c.bound)
    return stream_all("the plan's bound is ", plan.bound->time.count() - c.bound,
                      " ns higher than what is proven");
  return "";
}

}  // namespace pfeife::tool
