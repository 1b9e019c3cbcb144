// Whether a plan is one that a certificate speaks of, and all that its bound covers is proven.
#include <algorithm>
#include <cmath>

#include "planner/cost/estimate/evaluate.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

/// ns of F and B of a microbatch on the device of a rank, all layers together.
double all_load(const Certificate& c, RankId rank) {
  const std::size_t kind = c.cluster.kind_of_device[c.device_of_rank[rank.index()].index()];
  double sum = 0;
  for (const Layer& layer : c.layers.layers) {
    const LayerTimes& t = layer.times[kind];
    sum += static_cast<double>((t.forward + t.backward_input + t.backward_weight).count());
    if (c.recompute == Recompute::Full) sum += static_cast<double>(t.forward.count());
  }
  return sum;
}

/// Which cuts of the plan's bound the certificate leaves out; "" = none.
std::string left_out(const Certificate& c, const Bound& bound) {
  for (const CertifiedProof& proof : c.proofs) {
    if (proof.linked && !bound.linked) return "stages that are not linked to the next";
    if (refusal(proof.spec)) continue;
    const std::vector<RankId> ranks = placement_for(proof.spec).rank_of_stage;
    for (std::size_t s = 0; s < std::min(proof.least_load.size(), ranks.size()); ++s)
      if (static_cast<double>(proof.least_load[s]) >
          std::floor(bound.least_share * all_load(c, ranks[s]) / static_cast<double>(ranks.size())))
        return stream_all("stages of smaller loads than ", proof.least_load[s], " ns");
  }
  return "";
}

/// [rank] its device among those that the plan has.
std::vector<DeviceId> numbered(const std::vector<DeviceId>& device_of_rank) {
  std::vector<DeviceId> devices = device_of_rank, numbers;
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (const DeviceId device : device_of_rank)
    numbers.emplace_back(std::ranges::find(devices, device) - devices.begin());
  return numbers;
}

/// What a proof of any order says of a schedule: all of its point but what settles the order.
ScheduleSpec without_order(ScheduleSpec spec) {
  spec.family.clear(), spec.loop_batch.reset(), spec.prefetch.clear();
  return spec;
}

/// Whether the proof is of that schedule.
bool is_of(const CertifiedProof& proof, const ScheduleSpec& spec) {
  if (!proof.any_order || proof.spec == spec) return proof.spec == spec;
  const Family &proven = family(proof.spec.family), &said = family(spec.family);
  return without_order(proof.spec) == without_order(spec) && proven.mode == said.mode &&
         (proven.side_by_side || !said.side_by_side) &&
         placement_for(proof.spec).rank_of_stage == placement_for(spec).rank_of_stage;
}

/// The rows less SEND, RECV and REDUCE_GRAD, whose order is the plan's to choose: the estimate has
/// none.
Schedule without_messages(Schedule schedule) {
  for (std::vector<Cell>& row : schedule.rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action != nullptr && (is_transfer(action->op) || action->op == Op::ReduceGrad);
    });
  return schedule;
}

}  // namespace

std::string disagreement(const Certificate& c, const Plan& plan) {
  const auto recomputed = std::ranges::count(plan.activations.stages, true);
  const Placement placement{plan.placement.rank_of_stage, c.device_of_rank};
  if (plan.model_digest != c.layers.digest || plan.linear_order != c.layers.order)
    return "it is of another model or order";
  if (plan.cluster_digest != c.cluster.digest) return "it is of another cluster";
  if (plan.training.mode != c.layers.mode) return "it is of another training.mode";
  if (!plan.bound || plan.bound->schedules.empty()) return "the plan names no bound of schedules";
  if (plan.placement.ranks() != placement.ranks() || refusal(plan.spec) ||
      plan.bound->memory_limit.size() != placement.ranks() ||
      plan.placement.rank_of_stage != placement_for(plan.spec).rank_of_stage ||
      numbered(plan.placement.device_of_rank) != c.device_of_rank ||
      !illegal_because(c.layers, plan.partition).empty())
    return "it is of other ranks, devices or cuts";
  if ((c.recompute == Recompute::None && recomputed > 0) ||
      (c.recompute == Recompute::Full &&
       recomputed < static_cast<std::ptrdiff_t>(placement.stages())))
    return "it recomputes other stages";
  if (!plan.activations.blocks.empty())
    return "it recomputes blocks of layers, of which nothing is proven";
  if (plan.activations.offloads()) return "it offloads, of which nothing is proven";
  if (plan.activations.except_last)
    return "it does not recompute the last microbatch, of which nothing is proven";
  if (c.norm > step_norm(plan)) return "its optimizer steps wait for less than is proven";
  const StageCosts costs = stage_costs(c.layers, plan.partition, placement, c.cluster,
                                       plan.activations, step_norm(plan));
  const auto wrong = validate(plan.schedule, {stage_graph(costs), plan.spec.microbatches});
  if (!wrong.empty()) return "its schedule is wrong: " + wrong.front().message;
  const Prices found = evaluate_lowered(costs, plan.schedule, placement);
  if (!family(plan.spec.family).built_for_costs &&
      without_messages(plan.schedule) !=
          without_messages(lower(generate(plan.spec), costs, placement)))
    return "its schedule is not " + plan.spec.family;
  if (found.estimate != plan.estimate)
    return stream_all("by its costs the plan takes ", found.estimate.count(), " ns, the plan says ",
                      plan.estimate.count());
  const auto fits = [&](const std::vector<Bytes>& peak) {
    return std::ranges::equal(peak, plan.bound->memory_limit, std::ranges::less_equal{});
  };
  if (!fits(found.peak_memory) || !fits(plan.peak_memory))
    return "by its costs the plan does not fit";
  if (plan.bound->time > plan.estimate) return "the plan's bound is above its own time";
  return "";
}

std::string unproven(const Certificate& c, const Plan& plan) {
  const auto proven = [&](const ScheduleSpec& spec) {
    return !refusal(spec) && std::ranges::any_of(c.proofs, [&](const CertifiedProof& proof) {
      return is_of(proof, spec);
    });
  };
  if (std::ranges::find(plan.bound->schedules, plan.spec) == plan.bound->schedules.end())
    return stream_all("the plan's bound does not cover its own schedule, ", plan.spec.family);
  const auto missing = std::ranges::find_if_not(plan.bound->schedules, proven);
  const std::string chosen = missing != plan.bound->schedules.end() ? knobs(*missing) : "";
  if (missing != plan.bound->schedules.end())
    return stream_all("the plan's bound also covers ", missing->family,
                      ", V=", missing->stages_per_rank, chosen.empty() ? "" : ", ", chosen,
                      ", of which nothing is proven");
  if (plan.bound->recompute == Recompute::Blocks)
    return "the plan's bound also covers plans that recompute blocks of layers";
  if (c.recompute != plan.bound->recompute && c.recompute != Recompute::Choose)
    return "the plan's bound also covers plans that recompute other stages";
  if (!std::ranges::equal(plan.bound->memory_limit, c.memory_limit, std::ranges::less_equal{}))
    return "the plan's bound holds up to higher memory limits than are proven";
  if (const std::string cuts = left_out(c, *plan.bound); !cuts.empty())
    return "the plan's bound also covers " + cuts + ", of which nothing is proven";
  if (plan.bound->time.count() > c.bound)
    return stream_all("the plan's bound is ", plan.bound->time.count() - c.bound,
                      " ns higher than what is proven");
  return "";
}

}  // namespace pfeife::tool
