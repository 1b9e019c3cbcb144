#include "experiments/plans/case_problem.h"

#include <algorithm>

#include "experiments/plans/case_limits.h"
#include "experiments/plans/head_choice.h"
#include "experiments/plans/plan_case.h"
#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/ir/request/check.h"
#include "planner/ir/request/framework.h"
#include "planner/schedules/families.h"
#include "planner/search/reference/reference.h"
#include "planner/search/steps/if_needed.h"

namespace pfeife {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

/// Stages per rank of given cuts.
std::size_t stages_per_rank_of(const Partition& partition, const Request& config) {
  const std::size_t stages = partition.stages();
  if (stages % config.devices != 0)
    throw RefusedWish("plan.cuts", "plan.cuts: the cuts make " + number(stages) +
                                       " stages, which " + number(config.devices) +
                                       " devices cannot share evenly; a multiple of " +
                                       number(config.devices) + " stages is needed");
  return stages / config.devices;
}

/// Whether the families are those of `plan.for`: each is taken where it can be made.
bool families_of_framework(const PlanSettings& plan) {
  const Framework* const made_for = framework(plan.framework);
  return made_for != nullptr && plan.families == made_for->families;
}

/// Why a family that is asked for by name has no valid point among `stages_per_rank`; "" if all
/// have, or one of a framework's has.
std::string impossible_family(const Request& config,
                              const std::vector<std::size_t>& stages_per_rank) {
  const std::vector<std::size_t>& slices = config.plan.slices;
  const bool one_is_enough = families_of_framework(config.plan);
  for (const std::string& name : config.plan.families) {
    if (name == "all" || name == "certified") return "";
    std::string reason;
    for (const std::size_t v : stages_per_rank) {
      ScheduleSpec spec{.family = name,
                        .ranks = config.devices,
                        .microbatches = config.microbatches,
                        .stages_per_rank = v};
      if (!family(name).takes_whole()) {
        if (slices.empty() || slices.back() < 2)
          return name + " cuts microbatches into slices; say how many, as in plan.slices: [4]";
        spec.slices = slices.back();
      }
      const auto refused = refusal(spec);
      if (!refused) {
        reason.clear();
        break;
      }
      // A refusal that another number of microbatches would lift says more than one about the
      // stages_per_rank.
      if (reason.empty() || refused->microbatches) reason = to_string(*refused, spec);
    }
    if (!reason.empty() && !one_is_enough) return reason;
    if (reason.empty() && one_is_enough) return "";
  }
  return "";
}

std::vector<std::size_t> stages_per_rank_of(const Request& config,
                                            const std::optional<Partition>& cuts) {
  return cuts ? std::vector{stages_per_rank_of(*cuts, config)} : config.plan.stages_per_rank;
}

/// Slices that are asked for can be made.
void check_slices(const Request& config, const Layers& layers) {
  if (config.plan.slices.empty()) return;
  const std::vector<std::string> names = family_list(config.plan, config.training.mode);
  if (std::ranges::none_of(names, [](const std::string& n) { return family(n).takes_slices; }))
    throw RefusedWish("plan.slices",
                      "plan.slices: no family of plan.families cuts microbatches into slices; add "
                      "seq1f1b, terapipe, slimpipe or zb_greedy, or leave slices out");
  if (const std::string why = not_sliced_because(layers, config.plan.slices.back()); !why.empty())
    throw RefusedWish("plan.slices", "plan.slices: " + why);
}

/// Families that are named have the output layer where plan.head has it.
void check_heads(const PlanSettings& plan) {
  using Head = PlanSettings::Head;
  if (plan.families.front() == "all" || plan.families.front() == "certified") return;
  for (const std::string& name : plan.families) {
    const bool shares = family(name).head_barriers > 0;
    if (shares && plan.head == Head::Last)
      throw RefusedWish("plan.families", "plan.families: " + name +
                                             " shares the output layer over all ranks; set "
                                             "plan.head: shared, or auto");
    if (!shares && plan.head == Head::Shared)
      throw RefusedWish("plan.families", "plan.families: " + name +
                                             " has the output layer on the last rank; name "
                                             "vocab_1, vocab_2 or interlaced, or set plan.head: "
                                             "auto");
  }
}

std::vector<ScheduleSpec> schedules_of(const Request& config, const Layers& layers,
                                       const std::optional<Partition>& cuts) {
  check_heads(config.plan);
  const std::vector<std::size_t> stages_per_rank = stages_per_rank_of(config, cuts);
  if (const std::string reason = impossible_family(config, stages_per_rank); !reason.empty())
    throw RefusedWish("plan.families", "plan.families: " + reason);
  check_slices(config, layers);
  std::vector<ScheduleSpec> specs =
      config.plan.reference ? reference_set(config.devices, config.microbatches, stages_per_rank)
                            : search_set(config.devices, config.microbatches, stages_per_rank,
                                         family_list(config.plan, config.training.mode),
                                         config.plan.slices, config.plan.slice_lengths);
  if (const std::string why = undivided_because(config, layers); !why.empty()) {
    if (config.plan.head == PlanSettings::Head::Shared)
      throw RefusedWish("plan.head", "plan.head: ranks cannot share the output layer: " + why);
    std::erase_if(specs, shares_head);
  }
  if (specs.empty())
    throw RefusedWish(
        "plan", "plan: no schedule family can do " + number(config.devices) + " devices, " +
                    number(config.microbatches) +
                    " microbatches and these plan.stages_per_rank; add 1 to plan.stages_per_rank");
  return specs;
}

}  // namespace

std::vector<std::vector<ScheduleSpec>> searched_schedules(const Request& config,
                                                          const Layers& layers) {
  std::vector<std::vector<ScheduleSpec>> schedules;
  for (const SettledCase& settled :
       possible_cases(config, layers, [&](const Request&) { return &layers; }))
    schedules.push_back(schedules_of(settled.config, layers, given_cuts(config, layers)));
  return schedules;
}

std::vector<SettledCase> possible_cases(const Request& config, const Layers& layers,
                                        const LayersOf& layers_of) {
  return settled_cases(config, layers, layers_of, [&](const Request& settled) {
    return impossible_family(settled, stages_per_rank_of(settled, given_cuts(settled, layers)));
  });
}

Problem problem_of(const SettledCase& settled, const Cluster& cluster) {
  const Request& config = settled.config;
  const std::optional<Partition> cuts = given_cuts(config, *settled.layers);
  Problem problem{*settled.layers,    cluster, schedules_of(config, *settled.layers, cuts),
                  devices_of(config), {},      cuts};
  set_memory(config, problem);
  problem.receives = config.plan.receives;
  problem.norm = step_norm(config, *settled.layers);
  problem.order_microbatches = config.plan.search_microbatch_order;
  problem.offload = config.plan.offload;
  problem.search_placement = config.plan.search_placement;
  return problem;
}

Bytes searched_limit(const Request& config, const Problem& problem, DeviceId device) {
  const Bytes limit = memory_limit(config, problem.cluster, device);
  const auto allocator = allocator_of(config, problem.cluster);
  if (!allocator || has_lifetimes(problem.layers)) return limit;
  return Bytes{
      static_cast<std::int64_t>(static_cast<double>(limit.value) / reserved_factor(*allocator))};
}

void set_memory(const Request& config, Problem& problem) {
  problem.memory_limit.clear();
  for (const DeviceId device : problem.device_of_rank)
    problem.memory_limit.push_back(searched_limit(config, problem, device));
  if (has_lifetimes(problem.layers)) problem.allocator = allocator_of(config, problem.cluster);
}

StepNorm step_norm(const Request& config, const Layers& layers) {
  if (config.training.mode == Mode::Forward) return StepNorm::None;
  if (config.training.clip_norm > 0) return StepNorm::Clipped;
  const bool of_graph =
      std::ranges::any_of(layers.layers, [](const Layer& layer) { return !layer.nodes.empty(); });
  const bool finite = config.training.precision == Precision::Fp16Amp && of_graph;
  return finite && config.devices > 1 ? StepNorm::Finite : StepNorm::None;
}

Problem recomputing(Problem problem, Recompute recompute, bool except_last) {
  problem.recompute = recompute, problem.recompute_except_last = except_last;
  return problem;
}

Problem settled_problem(const CaseInputs& settled, Recompute recompute) {
  const PlanSettings& plan = settled.config->plan;
  Problem problem = with_settled_recomputation(
      recomputing(problem_of({*settled.config, settled.layers}, *settled.cluster), plan.recompute,
                  plan.recompute_except_last));
  problem.recompute = recompute;
  return problem;
}

Problem reference_problem(Problem problem) {
  problem.memory_rule = MemoryRule::Reference;
  for (std::size_t r = 0; r < problem.memory_limit.size(); ++r)
    problem.memory_limit[r] =
        Bytes{problem.cluster->kind(problem.device_of_rank[r]).memory.value / 20 * 17};
  return problem;
}

}  // namespace pfeife
