#include "experiments/plan_case.h"

#include <algorithm>
#include <chrono>

#include "planner/cost/stage_costs.h"
#include "planner/io/plan_file.h"
#include "planner/io/schedule_csv.h"
#include "planner/ir/lower.h"
#include "planner/ir/validate.h"
#include "planner/schedules/families.h"
#include "planner/search/min_max.h"
#include "planner/search/pareto.h"
#include "planner/search/reference.h"

namespace pfeife {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

Placement placed(Placement placement, const CaseConfig& config) {
  placement.device_of_rank = devices_of(config);
  return placement;
}

/// A schedule of a family with its transfers, for a partition. `order`: the compute-only one of a
/// family that builds it.
Candidate candidate_of(std::string plan, const ScheduleSpec& spec, Partition partition,
                       const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                       std::vector<bool> recompute = {},
                       const std::optional<Schedule>& order = std::nullopt) {
  Candidate candidate{.plan = std::move(plan),
                      .reason = "",
                      .spec = spec,
                      .partition = std::move(partition),
                      .placement = placed(placement_for(spec), config),
                      .schedule = {},
                      .recompute = std::move(recompute)};
  const StageCosts costs = stage_costs(layers, candidate.partition, candidate.placement, cluster,
                                       candidate.recompute);
  candidate.schedule = lower(order ? *order : generate(spec), costs, candidate.placement);
  return candidate;
}

// Which schedules the search chooses among.

/// Cuts that are given, checked against the model; nothing if they are to be searched.
std::optional<Partition> given_cuts(const CaseConfig& config, const Layers& layers) {
  const PlanSettings& plan = config.plan;
  if (plan.cuts == PlanSettings::Cuts::Search) return std::nullopt;
  Partition partition{plan.given_cuts};
  if (plan.cuts == PlanSettings::Cuts::EachLayer)
    for (std::size_t i = 0; i + 1 < layers.size(); ++i)
      partition.cuts.push_back(static_cast<std::int32_t>(i));
  if (const std::string reason = illegal_because(layers, partition); !reason.empty())
    throw ConfigError(plan.cuts_where, "plan.cuts: " + reason);
  return partition;
}

/// Stages per rank of given cuts.
std::size_t loops_of(const Partition& partition, const CaseConfig& config) {
  const std::size_t stages = partition.stages();
  if (stages % config.devices != 0)
    throw ConfigError(config.plan.cuts_where, "plan.cuts: the cuts make " + number(stages) +
                                                  " stages, which " + number(config.devices) +
                                                  " devices cannot share evenly; a multiple of " +
                                                  number(config.devices) + " stages is needed");
  return stages / config.devices;
}

/// Why a family that is asked for by name has no valid point among `loops`; "" if all have.
std::string impossible_family(const CaseConfig& config, const std::vector<std::size_t>& loops) {
  for (const std::string& name : config.plan.families) {
    if (name == "all" || name == "certified") return "";
    std::string reason;
    for (const std::size_t v : loops) {
      const ScheduleSpec spec{
          .family = name, .ranks = config.devices, .microbatches = config.microbatches, .loops = v};
      const auto refused = refusal(spec);
      if (!refused) {
        reason.clear();
        break;
      }
      // A refusal that another number of microbatches would lift says more than one about the
      // loops.
      if (reason.empty() || refused->microbatches) reason = to_string(*refused, spec);
    }
    if (!reason.empty()) return reason;
  }
  return "";
}

std::vector<std::size_t> loops_of(const CaseConfig& config, const std::optional<Partition>& cuts) {
  return cuts ? std::vector{loops_of(*cuts, config)} : config.plan.loops;
}

std::vector<ScheduleSpec> schedules_of(const CaseConfig& config,
                                       const std::optional<Partition>& cuts) {
  const std::vector<std::size_t> loops = loops_of(config, cuts);
  if (const std::string reason = impossible_family(config, loops); !reason.empty())
    throw ConfigError(config.plan.families_where, "plan.families: " + reason);
  std::vector<ScheduleSpec> specs =
      config.plan.reference
          ? reference_set(config.devices, config.microbatches, loops)
          : search_set(config.devices, config.microbatches, loops, family_list(config.plan));
  if (specs.empty())
    throw ConfigError(config.plan.where,
                      "plan: no schedule family can do " + number(config.devices) + " devices, " +
                          number(config.microbatches) +
                          " microbatches and these plan.loops; add 1 to plan.loops");
  return specs;
}

/// The same with the memory rule of the reference system: it takes 85 % of a device.
Problem reference_problem(Problem problem) {
  problem.memory_rule = MemoryRule::Reference;
  for (std::size_t r = 0; r < problem.memory_limit.size(); ++r)
    problem.memory_limit[r] =
        Bytes{problem.cluster.kind(problem.device_of_rank[r]).memory.value / 20 * 17};
  return problem;
}

/// Searches with the recomputation that the config allows.
SearchOutcome search_as_set(const CaseConfig& config, const Problem& given,
                            const SearchOptions& options) {
  using Setting = PlanSettings::Recompute;
  if (config.plan.reference) return reference_search(reference_problem(given));
  Problem problem = given;
  const Setting setting = config.plan.recompute;
  if (setting == Setting::Full) problem.recompute = Recompute::Full;
  if (setting == Setting::Choose) problem.recompute = Recompute::Choose;
  SearchOutcome outcome = search(problem, options);
  if (setting != Setting::IfNeeded || !outcome.plans.empty()) return outcome;
  problem.recompute = Recompute::Choose;
  const std::size_t before = outcome.candidates;
  outcome = search(problem, options);
  outcome.candidates += before;
  for (SearchStep& step : outcome.history) step.candidates += before;
  return outcome;
}
/// What search_as_set has tried last if it found nothing.
Recompute last_tried(const PlanSettings& plan) {
  switch (plan.recompute) {
    case PlanSettings::Recompute::None:
      return Recompute::None;
    case PlanSettings::Recompute::Full:
      return Recompute::Full;
    default:
      return Recompute::Choose;
  }
}

Problem problem_of(const SettledCase& settled, const Cluster& cluster) {
  const CaseConfig& config = settled.config;
  const std::optional<Partition> cuts = given_cuts(config, *settled.layers);
  return {*settled.layers,    cluster, schedules_of(config, cuts), devices_of(config),
          memory_limits(config, cluster), cuts};
}

/// The ways to settle a case; those that a family named in the config cannot do are left out.
std::vector<SettledCase> settled_cases(const CaseConfig& config, const Layers& layers,
                                       const LayersOf& layers_of) {
  return settled_cases(config, layers, layers_of, [&](const CaseConfig& settled) {
    return impossible_family(settled, loops_of(settled, given_cuts(settled, layers)));
  });
}

void search_plans(const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                  const LayersOf& layers_of, const SearchOptions& options, CasePlans& plans) {
  const std::vector<SettledCase> cases = settled_cases(config, layers, layers_of);
  std::vector<Problem> problems;
  for (const SettledCase& settled : cases) problems.push_back(problem_of(settled, cluster));
  SettledSearch found = search_settled(
      cases, problems, options, [&](const Problem& problem, const SearchOptions& of_search) {
        return search_as_set(config, problem, of_search);
      });
  SearchOutcome& outcome = found.outcome;
  plans.settled = std::make_shared<const CaseConfig>(found.best.config);
  plans.layers = found.best.layers;
  plans.alternatives = std::move(found.alternatives);
  for (PlannedSchedule& planned : outcome.plans)
    plans.planned.push_back(candidate_of("planned", planned.spec, planned.partition,
                                         *plans.settled, *plans.layers, cluster,
                                         planned.recompute, planned.order));
  if (outcome.plans.empty()) {
    Problem problem = problem_of(found.best, cluster);
    plans.planned.push_back(
        {.plan = "planned",
         .reason = outcome.infeasible
                       ? shortage(*outcome.infeasible, problem.schedules.size())
                       : "no plan found: the model cannot be cut into so many stages"});
    problem.recompute = last_tried(config.plan);
    if (!config.plan.reference)
      plans.tried = what_would_help(*plans.settled, problem, layers_of, options.threads);
  }
  for (const PlannedSchedule& point : outcome.front)
    plans.front.push_back({name_of(point), point.estimate, largest_peak(point)});
  plans.rejected = std::move(outcome.rejected);
  plans.history = std::move(outcome.history);
  plans.bound = std::move(outcome.bound);
  plans.certificate = std::move(outcome.certificate);
  plans.candidates = outcome.candidates;
}

// Plans and schedules that are given.

/// Refuses a lowered schedule that does not do what the model needs.
void check_given(const Candidate& candidate, const CaseConfig& config, const StageCosts& costs) {
  const Requirements needs{stage_graph(costs), candidate.spec.microbatches, true};
  const std::vector<Violation> violations = validate(candidate.schedule, needs);
  if (violations.empty()) return;
  const Violation& first = violations.front();
  throw ConfigError(config.plan.file->where, "\"" + config.plan.file->written +
                                                 "\" cannot run: rank " + to_string(first.rank) +
                                                 ", cell " + number(first.position) + ": " +
                                                 first.message + "; see pfeife-schedule validate");
}

bool has_transfers(const Schedule& schedule) {
  bool found = false;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& action) { found = found || is_transfer(action.op); });
  return found;
}

/// A schedule from a file, lowered if it has no transfers.
Candidate from_schedule(const CaseConfig& config, const Layers& layers, const Cluster& cluster) {
  const InputFile& file = *config.plan.file;
  Schedule schedule = read_schedule_file(file.path);
  const std::optional<Placement> placement = placement_of(schedule);
  if (!placement)
    throw ConfigError(file.where,
                      "\"" + file.written + "\" has a stage on two ranks, or misses one");
  const Partition partition = *given_cuts(config, layers);
  if (partition.stages() != placement->stages())
    throw ConfigError(config.plan.cuts_where,
                      "plan.cuts: the cuts make " + number(partition.stages()) + " stages, \"" +
                          file.written + "\" has " + number(placement->stages()));
  Candidate candidate{.plan = "planned",
                      .reason = "",
                      .spec = {.family = "file",
                               .ranks = schedule.ranks(),
                               .microbatches = microbatch_count(schedule),
                               .loops = placement->stages() / schedule.ranks()},
                      .partition = partition,
                      .placement = placed(*placement, config),
                      .schedule = {},
                      .recompute = {}};
  const StageCosts costs = stage_costs(layers, candidate.partition, candidate.placement, cluster);
  candidate.schedule =
      has_transfers(schedule) ? schedule : lower(schedule, costs, candidate.placement);
  check_given(candidate, config, costs);
  return candidate;
}

Candidate from_plan(const CaseConfig& config, const Layers& layers, const Cluster& cluster) {
  const InputFile& file = *config.plan.file;
  const Plan plan = read_plan(file.path);
  if (plan.model_digest != layers.digest)
    throw ConfigError(file.where, "\"" + file.written + "\" was made for another model (\"" +
                                      plan.model + "\" with digest " +
                                      plan.model_digest.substr(0, 12) + "..., this one has " +
                                      layers.digest.substr(0, 12) + "...)");
  if (plan.order != layers.order)
    throw ConfigError(file.where, "\"" + file.written + "\" has its layers in the order \"" +
                                      plan.order + "\", which this model has not");
  if (const std::string reason = illegal_because(layers, plan.partition); !reason.empty())
    throw ConfigError(file.where, "\"" + file.written + "\": " + reason);
  for (const DeviceId device : plan.placement.device_of_rank)
    if (device.index() >= cluster.devices())
      throw ConfigError(file.where, "\"" + file.written + "\" uses device " + to_string(device) +
                                        ", the cluster has " + number(cluster.devices()));
  Candidate candidate{"planned",      "",            plan.spec,     plan.partition,
                      plan.placement, plan.schedule, plan.recompute};
  check_given(candidate, config, stage_costs(layers, plan.partition, plan.placement, cluster));
  return candidate;
}

Candidate baseline(const std::string& name, const CaseConfig& config, const Layers& layers,
                   const Cluster& cluster) {
  // One stage a device where the family allows it, otherwise as few as it does.
  ScheduleSpec spec{
      .family = name, .ranks = config.devices, .microbatches = config.microbatches, .loops = 1};
  auto refused = refusal(spec);
  if (refused && refused->loops) {
    spec.loops = *refused->loops;
    refused = refusal(spec);
  }
  const auto impossible = [&](const std::string& reason) {
    return Candidate{.plan = name, .reason = "not possible: " + reason, .spec = spec};
  };
  if (refused) return impossible(to_string(*refused, spec));
  const std::optional<Partition> cuts =
      equal_time_cuts(layers, placed(placement_for(spec), config), cluster);
  if (!cuts) return impossible("the model cannot be cut into " + number(spec.stages()) + " stages");
  if (!family(name).built_for_costs)
    return candidate_of(name, spec, *cuts, config, layers, cluster);
  const Problem built{layers, cluster, {spec}, devices_of(config), memory_limits(config, cluster),
                      *cuts};
  const SearchOutcome outcome = search(built, {.keep = 1});
  if (outcome.plans.empty()) return impossible("no order fits into the memory on equal-time cuts");
  return candidate_of(name, spec, *cuts, config, layers, cluster, {},
                      outcome.plans.front().order);
}

}  // namespace

std::vector<std::string> family_list(const PlanSettings& plan) {
  const bool all = plan.families.front() == "all";
  if (!all && plan.families.front() != "certified") return plan.families;
  std::vector<std::string> names;
  for (const Family& family : families())
    if (all || family.certified) names.push_back(family.name);
  return names;
}

std::vector<DeviceId> devices_of(const CaseConfig& config) {
  std::vector<DeviceId> devices = config.plan.devices;
  for (std::size_t rank = devices.size(); rank < config.devices; ++rank)
    devices.emplace_back(static_cast<std::int64_t>(rank));
  devices.resize(config.devices);
  return devices;
}

Bytes memory_limit(const CaseConfig& config, const Cluster& cluster, DeviceId device) {
  const DeviceKind& kind = cluster.kind(device);
  return kind.memory - config.plan.reserve.value_or(kind.reserve);
}

std::vector<Bytes> memory_limits(const CaseConfig& config, const Cluster& cluster) {
  std::vector<Bytes> limits;
  for (const DeviceId device : devices_of(config))
    limits.push_back(memory_limit(config, cluster, device));
  return limits;
}

void check_case(const CaseConfig& config, const Layers& layers, const Cluster& cluster) {
  for (const DeviceId device : config.plan.devices)
    if (device.index() >= cluster.devices())
      throw ConfigError(config.plan.devices_where, "plan.devices: device " + to_string(device) +
                                                       " is not in the cluster, which has " +
                                                       number(cluster.devices()) + " (0 to " +
                                                       number(cluster.devices() - 1) + ")");
  switch (config.plan.source) {
    case PlanSettings::Source::Search:
      for (const SettledCase& settled :
           settled_cases(config, layers, [&](const CaseConfig&) { return &layers; }))
        schedules_of(settled.config, given_cuts(config, layers));
      break;
    case PlanSettings::Source::PlanFile:
      from_plan(config, layers, cluster);
      break;
    case PlanSettings::Source::ScheduleFile:
      from_schedule(config, layers, cluster);
      break;
  }
}

CasePlans plan_case(const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                    const LayersOf& layers_of, std::size_t keep, std::size_t threads) {
  CasePlans plans;
  plans.settled = std::make_shared<const CaseConfig>(config);
  plans.layers = &layers;
  const auto started = std::chrono::steady_clock::now();
  switch (config.plan.source) {
    case PlanSettings::Source::Search:
      search_plans(config, layers, cluster, layers_of,
                   {.keep = keep, .iterations = config.plan.iterations, .threads = threads, .certificate = true}, plans);
      break;
    case PlanSettings::Source::PlanFile:
      plans.planned.push_back(from_plan(config, layers, cluster));
      break;
    case PlanSettings::Source::ScheduleFile:
      plans.planned.push_back(from_schedule(config, layers, cluster));
      break;
  }
  plans.search_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  for (const std::string& name : config.baselines)
    plans.baselines.push_back(baseline(name, *plans.settled, *plans.layers, cluster));
  return plans;
}

}  // namespace pfeife
