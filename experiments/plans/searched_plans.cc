#include "experiments/plans/searched_plans.h"

#include <algorithm>

#include "experiments/plans/case_limits.h"
#include "experiments/plans/choices.h"
#include "experiments/plans/search_share.h"
#include "experiments/plans/simulated_times.h"
#include "planner/io/plan/plan_file.h"
#include "planner/ir/request/check.h"
#include "planner/schedules/families.h"
#include "planner/search/choices/advice.h"
#include "planner/search/choices/leaner_orders.h"
#include "planner/search/joint/if_needed.h"
#include "planner/search/price/pareto.h"
#include "planner/search/price/price.h"
#include "planner/search/reference/reference.h"
#include "planner/search/search.h"

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

/// Why a family that is asked for by name has no valid point among `stages_per_rank`; "" if all
/// have.
std::string impossible_family(const Request& config,
                              const std::vector<std::size_t>& stages_per_rank) {
  for (const std::string& name : config.plan.families) {
    if (name == "all" || name == "certified") return "";
    std::string reason;
    for (const std::size_t v : stages_per_rank) {
      const ScheduleSpec spec{.family = name,
                              .ranks = config.devices,
                              .microbatches = config.microbatches,
                              .stages_per_rank = v};
      const auto refused = refusal(spec);
      if (!refused) {
        reason.clear();
        break;
      }
      // A refusal that another number of microbatches would lift says more than one about the
      // stages_per_rank.
      if (reason.empty() || refused->microbatches) reason = to_string(*refused, spec);
    }
    if (!reason.empty()) return reason;
  }
  return "";
}

std::vector<std::size_t> stages_per_rank_of(const Request& config,
                                            const std::optional<Partition>& cuts) {
  return cuts ? std::vector{stages_per_rank_of(*cuts, config)} : config.plan.stages_per_rank;
}

std::vector<ScheduleSpec> schedules_of(const Request& config,
                                       const std::optional<Partition>& cuts) {
  const std::vector<std::size_t> stages_per_rank = stages_per_rank_of(config, cuts);
  if (const std::string reason = impossible_family(config, stages_per_rank); !reason.empty())
    throw RefusedWish("plan.families", "plan.families: " + reason);
  std::vector<ScheduleSpec> specs =
      config.plan.reference ? reference_set(config.devices, config.microbatches, stages_per_rank)
                            : search_set(config.devices, config.microbatches, stages_per_rank,
                                         family_list(config.plan));
  if (specs.empty())
    throw RefusedWish(
        "plan", "plan: no schedule family can do " + number(config.devices) + " devices, " +
                    number(config.microbatches) +
                    " microbatches and these plan.stages_per_rank; add 1 to plan.stages_per_rank");
  return specs;
}

/// Searches with the recomputation that the config allows.
Answer search_as_set(const Request& config, const Problem& given, const SearchOptions& options) {
  if (config.plan.reference) return reference_search(reference_problem(given));
  return search(recomputing(given, config.plan.recompute, config.plan.recompute_except_last),
                options);
}

Problem problem_of(const SettledCase& settled, const Cluster& cluster) {
  const Request& config = settled.config;
  const std::optional<Partition> cuts = given_cuts(config, *settled.layers);
  Problem problem{*settled.layers,
                  cluster,
                  schedules_of(config, cuts),
                  devices_of(config),
                  memory_limits(config, cluster),
                  cuts};
  problem.receives = config.plan.receives;
  problem.norm = step_norm(config, *settled.layers);
  return problem;
}

/// The ways to settle a case; those that a family named in the config cannot do are left out.
std::vector<SettledCase> settled_cases(const Request& config, const Layers& layers,
                                       const LayersOf& layers_of) {
  return settled_cases(config, layers, layers_of, [&](const Request& settled) {
    return impossible_family(settled, stages_per_rank_of(settled, given_cuts(settled, layers)));
  });
}

/// The choices of a plan that was written. Its schedule is lowered.
Choice choice_of(const Plan& plan) {
  Choice choice = plan;
  choice.order.reset();
  if (!family(plan.spec.family).built_for_costs) return choice;
  choice.order = plan.schedule;
  for (std::vector<Cell>& row : choice.order->rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* const action = std::get_if<Action>(&cell);
      return action != nullptr && !is_compute(action->op);
    });
  return choice;
}

/// Plans of other cases that fit here, for these layers, devices and schedules.
std::vector<std::pair<std::string, Priced>> handed_plans(const CaseInputs& inputs,
                                                         const Problem& problem) {
  std::vector<std::pair<std::string, Priced>> found;
  for (const auto& [name, file] : inputs.handed) {
    if (!std::filesystem::exists(file)) continue;  // nothing fits there
    const Plan plan = read_plan(file);
    if (plan.model_digest != problem.layers.digest || plan.linear_order != problem.layers.order ||
        plan.placement.device_of_rank != problem.device_of_rank ||
        !illegal_because(problem.layers, plan.partition).empty() ||
        std::ranges::find(problem.schedules, plan.spec) == problem.schedules.end())
      continue;
    if (auto priced = fitting(problem, choice_of(plan)))
      found.emplace_back(name, *std::move(priced));
  }
  return found;
}

/// Plans that were not found here are candidates like the others.
void add_handed(EvaluatedCase& plans) {
  Answer& answer = plans.answer;
  std::erase_if(plans.handed, [&](const auto& handed) {
    return std::ranges::find(answer.all, handed.second) != answer.all.end();
  });
  for (const auto& [name, plan] : plans.handed) {
    answer.plans.push_back(plan);
    answer.all.push_back(plan);
  }
  if (!answer.plans.empty()) answer.infeasible.reset();
  std::ranges::stable_sort(answer.plans, {}, &Priced::estimate);
  std::ranges::stable_sort(answer.all, {}, &Priced::estimate);
}

/// Why nothing was found although no memory is short.
std::string uncuttable(const Problem& problem, bool reference) {
  const std::size_t most = most_stages(problem.layers);
  const bool too_few = std::ranges::all_of(
      problem.schedules, [&](const ScheduleSpec& spec) { return spec.stages() > most; });
  if (!too_few)
    return std::string("no plan found") +
           (reference ? ": the rule for first cuts of plan.search: reference makes fewer stages of "
                        "these layers than are needed"
                      : "");
  return "no plan found: the model can be cut into " + std::to_string(most) +
         (most == 1 ? " stage" : " stages") + " at most, and every schedule listed has more";
}

constexpr double kWorthLeavingBlocks = 0.99;  ///< of the step between blocks
constexpr std::size_t kTriedElsewhere = 4;    ///< of its schedules, to know what blocks cost
constexpr std::size_t kShareElsewhere = 4;    ///< of the effort, a fourth

/// Searches the plans of one case.
class CaseSearch {
 public:
  CaseSearch(const CaseInputs& inputs, const LayersOf& layers_of, const SearchOptions& options)
      : inputs_(inputs), layers_of_(layers_of), options_(options) {
    const Request& config = *inputs.config;
    if (config.simulate && chosen_by(config) != SelectBy::Estimate)
      options_.times = [&](const Problem& problem, std::span<const Priced> plans) {
        std::vector<Nanoseconds> times;
        for (const SimulatedStep& step : simulated_steps(inputs_, problem, plans, options_.threads))
          times.push_back(step_time(step.trace));
        return times;
      };
  }

  /// Where cuts lie is the config's wish, or nothing is to be compared.
  SettledSearch alone() const {
    return search(settled_cases(*inputs_.config, *inputs_.layers, layers_of_), options_);
  }

  /// Cuts between blocks, unless others make the step shorter by more than 1 %.
  SettledSearch between_blocks_or_anywhere() const {
    const std::vector<SettledCase> cases = cases_between_blocks();
    if (cases.empty()) return alone();
    SettledSearch between = search(cases, part_of(options_, 0, kBetween));
    CutPlaces places{.blocks = time_of(between.best, between.answer),
                     .simulated = !!options_.times};
    if (places.blocks) {
      places.anywhere = time_elsewhere(between);
      if (!places.anywhere ||
          static_cast<double>(places.anywhere->count()) >
              kWorthLeavingBlocks * static_cast<double>(places.blocks->count())) {
        between.answer.cut_places = places;
        return between;
      }
    }
    SettledSearch anywhere =
        search(settled_cases(at_layers(*inputs_.config), *inputs_.layers, layers_of_),
               part_of(options_, kBetween, 1));
    places.anywhere = time_of(anywhere.best, anywhere.answer);
    places.between_blocks =
        places.blocks && (!places.anywhere || *places.anywhere >= *places.blocks);
    SettledSearch& chosen = places.between_blocks ? between : anywhere;
    chosen.answer.cut_places = places;
    return std::move(chosen);
  }

 private:
  static constexpr double kBetween = 0.9;  // of the progress: mostly it is all

  /// The least of its plans, as plans are compared.
  std::optional<Nanoseconds> time_of(const SettledCase& settled, const Answer& answer) const {
    if (answer.plans.empty()) return std::nullopt;
    if (!options_.times) return answer.plans.front().estimate;
    return least_time(problem_of(settled, *inputs_.cluster), answer, options_);
  }
  static Request at_layers(Request config) {
    config.plan.cuts_at = PlanSettings::CutsAt::Layers;
    return config;
  }
  /// None if the case cannot have such cuts.
  std::vector<SettledCase> cases_between_blocks() const {
    Request config = *inputs_.config;
    config.plan.cuts_at = PlanSettings::CutsAt::Blocks;
    const Layers* const layers = layers_of_ ? layers_of_(config) : nullptr;
    if (layers == nullptr) return {};
    try {
      return settled_cases(config, *layers, layers_of_);
    } catch (const ConfigError&) {  // no schedule has so few stages
      return {};
    }
  }
  /// A short search of the best schedules, with cuts anywhere.
  std::optional<Nanoseconds> time_elsewhere(const SettledSearch& between) const {
    Request config = at_layers(between.best.config);
    const Layers* const layers = layers_of_(config);
    if (layers == nullptr) return std::nullopt;
    Problem problem = problem_of({config, layers}, *inputs_.cluster);
    problem.schedules.clear();
    for (const Priced& plan : between.answer.all)
      if (problem.schedules.size() < kTriedElsewhere) problem.schedules.push_back(plan.spec);
    SearchOptions options = options_;
    options.iterations = std::max<std::size_t>(1, options_.effort() / kShareElsewhere);
    options.certificate = false, options.progress = {}, options.after_step = {};
    return time_of({config, layers}, search_as_set(config, problem, options));
  }
  SettledSearch search(const std::vector<SettledCase>& cases, const SearchOptions& options) const {
    std::vector<Problem> problems;
    for (const SettledCase& settled : cases)
      problems.push_back(problem_of(settled, *inputs_.cluster));
    return search_settled(cases, problems, options,
                          [&](const Problem& problem, const SearchOptions& of_search) {
                            return search_as_set(*inputs_.config, problem, of_search);
                          });
  }

  const CaseInputs& inputs_;
  const LayersOf& layers_of_;
  SearchOptions options_;
};

/// Adds orders that need less, as fast and nearly as fast, to the front.
void add_leaner_orders(const Problem& problem, double as_fast, std::size_t threads,
                       Answer& answer) {
  for (const double slower : {as_fast, kNearlyAsFast})
    for (Priced& plan : leaner_orders(problem, answer.all, slower, threads))
      answer.front.push_back(std::move(plan));
  answer.front = pareto_front(std::move(answer.front), problem.memory_limit);
}

/// The best plans of a search, and the least full ones of those that count as fast, or nearly; the
/// fastest first.
std::vector<Priced> plans_to_compare(const Answer& answer, double as_fast) {
  constexpr std::ptrdiff_t kLeastFull = 3;
  std::vector<Priced> plans = answer.plans;
  if (plans.empty()) return plans;
  const auto fastest = static_cast<double>(plans.front().estimate.count());
  const auto add = [&](double share, std::ptrdiff_t count) {
    const auto end = std::ranges::find_if(answer.front, [&](const Priced& plan) {
      return static_cast<double>(plan.estimate.count()) > (1 + share) * fastest;
    });
    const auto begin = end - std::min(end - answer.front.begin(), count);
    for (const Priced& plan : std::ranges::subrange(begin, end))
      if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
  };
  add(as_fast, kLeastFull);
  add(kNearlyAsFast, 1);
  std::ranges::stable_sort(plans, {}, &Priced::estimate);
  return plans;
}

}  // namespace

std::vector<std::vector<ScheduleSpec>> searched_schedules(const Request& config,
                                                          const Layers& layers) {
  std::vector<std::vector<ScheduleSpec>> schedules;
  for (const SettledCase& settled :
       settled_cases(config, layers, [&](const Request&) { return &layers; }))
    schedules.push_back(schedules_of(settled.config, given_cuts(config, layers)));
  return schedules;
}

StepNorm step_norm(const Request& config, const Layers& layers) {
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
        Bytes{problem.cluster.kind(problem.device_of_rank[r]).memory.value / 20 * 17};
  return problem;
}

CaseInputs search_plans(const CaseInputs& inputs, const LayersOf& layers_of,
                        const SearchOptions& options, EvaluatedCase& plans) {
  const Request& config = *inputs.config;
  const Cluster& cluster = *inputs.cluster;
  const CaseSearch search(inputs, layers_of, options);
  SettledSearch found =
      cuts_are_open(config) ? search.between_blocks_or_anywhere() : search.alone();
  plans.answer = std::move(found.answer);
  plans.settled = std::make_shared<const Request>(found.best.config);
  const CaseInputs settled{plans.settled.get(), found.best.layers, &cluster};
  if (!inputs.handed.empty()) {
    plans.handed = handed_plans(inputs, settled_problem(settled, plans.answer.recompute));
    add_handed(plans);
  }
  const Origin origin = config.plan.reference ? Origin::Reference : Origin::Search;
  const bool compared = options.keep > 1 && !config.plan.reference;
  if (compared && !plans.answer.plans.empty())
    add_leaner_orders(settled_problem(settled, plans.answer.recompute),
                      config.plan.counts_as_fast(), options.threads, plans.answer);
  const std::vector<Priced> best =
      compared ? plans_to_compare(plans.answer, config.plan.counts_as_fast()) : plans.answer.plans;
  for (const Priced& planned : best)
    plans.planned.push_back(estimated_plan(settled, origin, kPlanned, planned));
  if (!plans.planned.empty()) return settled;
  const Problem problem = with_settled_recomputation(recomputing(
      problem_of(found.best, cluster), config.plan.recompute, config.plan.recompute_except_last));
  const std::optional<Infeasible>& infeasible = plans.answer.infeasible;
  plans.planned.push_back(no_plan(settled, origin, kPlanned,
                                  infeasible ? shortage(*infeasible, problem.schedules.size())
                                             : uncuttable(problem, config.plan.reference)));
  if (!config.plan.reference)
    plans.answer.tried = what_would_help(*plans.settled, problem, layers_of, options.threads);
  return settled;
}

}  // namespace pfeife
