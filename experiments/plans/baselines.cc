#include "experiments/plans/baselines.h"

#include "experiments/plans/baseline_cuts.h"
#include "experiments/plans/case_limits.h"
#include "experiments/plans/case_problem.h"
#include "planner/cost/stages/blocks.h"
#include "planner/schedules/families.h"
#include "planner/search/reference/reference.h"
#include "planner/search/search.h"
#include "planner/search/steps/if_needed.h"

namespace pfeife {

namespace {

/// All that may be recomputed of these cuts: it is to be seen what is lacking.
Activations all_recomputed(const Problem& problem, const Partition& cuts) {
  Activations all{.except_last = problem.recompute_except_last};
  if (problem.recompute == Recompute::Blocks)
    all.blocks = cut_blocks(problem.blocks, cuts);
  else if (problem.recompute != Recompute::None)
    all.stages.assign(cuts.stages(), true);
  return all;
}

/// The schedule that is asked for, with as few stages a rank as the family takes where that is
/// open.
ScheduleSpec spec_of(const BaselineSettings& settings, const Request& config) {
  ScheduleSpec spec{.family = settings.family,
                    .ranks = config.devices,
                    .microbatches = config.microbatches,
                    .stages_per_rank = settings.stages_per_rank.value_or(1),
                    .loop_batch = settings.loop_batch,
                    .prefetch = settings.prefetch};
  const auto refused = refusal(spec);
  if (refused && refused->stages_per_rank && !settings.stages_per_rank)
    spec.stages_per_rank = *refused->stages_per_rank;
  return spec;
}

}  // namespace

Evaluation baseline(const BaselineSettings& settings, const CaseInputs& inputs) {
  const Request& config = *inputs.config;
  const ScheduleSpec spec = spec_of(settings, config);
  const auto impossible = [&](const std::string& reason) {
    return no_plan(inputs, Origin::Baseline, settings.name(), "not possible: " + reason, spec);
  };
  if (const auto refused = refusal(spec)) return impossible(to_string(*refused, spec));
  if (!family(spec.family).takes_whole())
    return impossible(spec.family +
                      " cuts microbatches into slices, which baselines do not; name it in "
                      "plan.families, with plan.slices");
  const std::vector<DeviceId> devices = devices_of(config);
  const Placement placement = placement_for(spec, devices);
  const Layers layers = cut_where(settings, *inputs.layers);
  const bool as_reference = settings.cuts == BaselineSettings::Cuts::Reference;
  const bool searched = settings.cuts == BaselineSettings::Cuts::Search || as_reference;
  Priced planned{{.spec = spec, .placement = placement}};
  if (!searched) {
    const BaselineCuts cuts = baseline_cuts(settings, layers, placement, *inputs.cluster);
    if (!cuts.refusal.empty()) return impossible(cuts.refusal);
    planned.partition = cuts.partition;
  }
  const bool built = family(settings.family).built_for_costs;
  if (searched || built || settings.recompute != Recompute::None) {
    Problem asked{layers, *inputs.cluster, {spec}, devices, {}, {}};
    set_memory(config, asked);
    asked.receives = config.plan.receives, asked.norm = step_norm(config, layers);
    if (!searched) asked.cuts = planned.partition;
    const Problem problem = with_settled_recomputation(
        recomputing(asked, settings.recompute, settings.recompute_except_last));
    Answer outcome = as_reference
                         ? reference_search(reference_problem(problem))
                         : search(problem, {.keep = 1, .iterations = config.plan.iterations});
    if (!outcome.plans.empty())
      planned = std::move(outcome.plans.front());
    else if (searched)
      return impossible("no cuts were found that fit into the memory");
    else if (built)
      return impossible("no order fits into the memory on these cuts");
    else
      planned.activations = all_recomputed(problem, planned.partition);
  }
  Evaluation evaluation = estimated_plan(inputs, Origin::Baseline, settings.name(), planned);
  evaluation.choice->estimate = evaluation.plan.estimate;
  evaluation.choice->peak_memory = evaluation.plan.peak_memory;
  evaluation.plan.found["by"] = cuts_in_words(settings);
  return evaluation;
}

}  // namespace pfeife
