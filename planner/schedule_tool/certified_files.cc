// Whether a certificate and a plan are of the costs that the files named by the plan make.
#include <algorithm>

#include "planner/cost/estimate/priced_plan.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/judge/validate.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {

std::string other_plan(const Plan& plan, const PlanInputs& inputs) {
  const auto& [cluster, layers] = inputs;
  for (const DeviceId device : plan.placement.device_of_rank)
    if (device.index() >= cluster.devices()) return "a device that the cluster does not have";
  const std::string illegal = illegal_because(layers, plan.partition) +
                              illegal_because(layers, plan.partition, plan.activations.blocks);
  if (!illegal.empty()) return illegal;
  const StageCosts costs = stage_costs(layers, plan, cluster);
  const std::size_t slices = plan.spec.slices;
  const auto wrong = validate(plan.schedule, {.stages = stage_graph(costs),
                                              .microbatches = plan.spec.microbatches * slices,
                                              .slices = slices});
  if (!wrong.empty()) return "its schedule is wrong: " + wrong.front().message;
  const auto priced = priced_plan(plan, true, layers, cluster);
  const auto* const found = std::get_if<PricedPlan>(&priced);
  if (found == nullptr) return "its schedule does not end";
  if (found->plan.estimate != plan.estimate)
    return stream_all("the plan takes ", found->plan.estimate.count(), " ns, not ",
                      plan.estimate.count());
  return found->plan == plan ? "" : "memory, order or names of the cuts are others";
}

FromFiles compare_with_files(const Certificate& c, const Plan& plan,
                             const std::filesystem::path& folder) {
  if (!plan.files || !plan.bound) return {"plan.yaml names no files", ""};
  std::optional<PlanInputs> costs;
  try {
    costs = read_plan_inputs(plan, folder);
  } catch (const ConfigError& error) {
    return {error.what(), ""};
  }
  if (const std::string other = other_plan(plan, *costs); !other.empty())
    return {"", "the plan is not of the files that it names: " + other};
  const Layers& all = costs->layers;
  const auto hides = [](const CertifiedProof& proof) {
    return !refusal(proof.spec) && family(proof.spec.family).side_by_side;
  };
  if (!all.collectives.empty() && std::ranges::any_of(c.proofs, hides))
    return {"", "it has a schedule that hides collectives, of which nothing is proven"};
  Certificate anew = certified_problem(
      plan.bound->given_cuts ? cut_only_at(plan.partition, all) : all, costs->cluster,
      plan.placement.device_of_rank, c.memory_limit, c.recompute, c.norm);
  anew.bound = c.bound, anew.proofs = c.proofs;
  if (certificate_text(anew) != certificate_text(c))
    return {
        "",
        "its costs or legal cuts are not those that this program computes from the plan's files"};
  return {};
}

}  // namespace pfeife::tool
