#include "experiments/pfeife.h"

#include <map>
#include <utility>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/plan_case.h"
#include "experiments/plans/plan_folder.h"
#include "experiments/plans/reasons.h"
#include "experiments/plans/simulated_choice.h"
#include "planner/cost/estimate/link_load.h"
#include "planner/cost/estimate/memory.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/schedule_tool/certify.h"
#include "plots/timeline/timeline.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

InputFile input_file(const std::filesystem::path& file) {
  return {.written = file.filename().string(), .path = file, .where = {file.string()}};
}

void must_exist(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) throw ConfigError({file.string()}, "there is no such file");
}

ModelFormat format_of(const std::filesystem::path& file) {
  if (file.extension() == ".pt2") return ModelFormat::Pt2;
  if (file.extension() == ".csv") return ModelFormat::Table;
  throw ConfigError({file.string()},
                    "the format does not follow from the file's name; say ModelFiles::format");
}

/// The wishes as the case of a config.
CaseConfig case_of(const Model& model, const Cluster& cluster, const PlanOptions& options) {
  CaseConfig config;
  config.name = model.layers ? model.layers->name : model.files.file.stem().string();
  config.model.file = input_file(model.files.file);
  config.model.format = model.files.format;
  config.model.time_unit = model.files.time_unit;
  if (model.files.skips) config.model.skips = input_file(*model.files.skips);
  if (model.files.profile) config.profile = input_file(*model.files.profile);
  config.operators = model.files.operators;
  config.cluster = input_file(cluster.file);
  config.precision = options.precision, config.optimizer = options.optimizer;
  config.clip_norm = options.clip_norm;
  config.microbatch_size = options.microbatch_size;
  config.devices = options.devices == 0 ? cluster.devices() : options.devices;
  config.microbatches = options.microbatches;
  config.plan.families = options.families;
  config.plan.stages_per_rank = options.stages_per_rank;
  config.plan.reserve = options.reserve;
  config.plan.iterations = options.iterations;
  config.baselines.clear();
  for (const std::string& family : options.baselines) config.baselines.push_back({family});
  config.simulate = options.simulate;
  config.select_by = options.simulate ? SelectBy::Simulate : SelectBy::Estimate;
  return config;
}

void check(const CaseConfig& config, const Cluster& cluster) {
  if (config.devices > cluster.devices())
    throw ConfigError({cluster.file}, "the cluster has " + std::to_string(cluster.devices()) +
                                          " devices, " + std::to_string(config.devices) +
                                          " are asked for");
  for (const auto& [name, empty] :
       {std::pair("microbatches", config.microbatches == 0),
        std::pair("families", config.plan.families.empty()),
        std::pair("stages_per_rank", config.plan.stages_per_rank.empty())})
    if (empty)
      throw ConfigError({}, std::string("PlanOptions::") + name + ": at least one is needed");
}

Contestant contestant(const Evaluation& evaluation) {
  return {.name = evaluation.name,
          .reason = evaluation.reason,
          .priced = {evaluation.plan, evaluation.costs, evaluation.estimated},
          .simulated = evaluation.simulated,
          .fits = evaluation.fits()};
}

Planned planned_of(const EvaluatedCase& evaluated) {
  const Evaluation& chosen = evaluated.planned[evaluated.chosen];
  Planned planned{.memory_limit = chosen.memory_limit,
                  .bound = evaluated.search.bound,
                  .bound_covers = evaluated.search.bound_covers,
                  .lost = lost_schedules(evaluated),
                  .front = evaluated.search.front,
                  .tried = evaluated.search.tried,
                  .certificate = evaluated.search.certificate,
                  .candidates = evaluated.search.candidates};
  planned.contestants.push_back(contestant(chosen));
  for (const Evaluation& baseline : evaluated.baselines)
    planned.contestants.push_back(contestant(baseline));
  return planned;
}

}  // namespace

Model load_model(const std::filesystem::path& file) {
  must_exist(file);
  return load_model({.file = file, .format = format_of(file)});
}

Model load_model(ModelFiles files) {
  const auto place = [](std::filesystem::path& file) {
    must_exist(file);
    file = std::filesystem::absolute(file);
  };
  place(files.file);
  if (files.skips) place(*files.skips);
  if (files.profile) place(*files.profile);
  return {.files = std::move(files)};
}

Model model_of(Layers layers) {
  return {.files = {}, .layers = std::make_shared<const Layers>(std::move(layers))};
}

Cluster load_cluster(const std::filesystem::path& file) {
  return read_cluster(std::filesystem::absolute(file));
}

const PricedPlan& Contestant::plan() const {
  if (!reason.empty()) throw RuntimeFault(reason);
  return priced;
}

Planned plan(const Model& model, const Cluster& cluster, const PlanOptions& options) {
  const CaseConfig config = case_of(model, cluster, options);
  check(config, cluster);
  const auto layers = model.layers ? model.layers
                                   : std::make_shared<const Layers>(read_layers(
                                         model_files(config), cluster, model_use(config)));
  const CaseInputs inputs{&config, layers.get(), &cluster};
  check_case(inputs);
  const auto progress = [&](double share) {
    if (options.stop.stop_requested()) throw Stopped();
    if (options.progress) options.progress(share);
  };
  const LayersOf of_this_size = [&](const CaseConfig&) { return nullptr; };
  EvaluatedCase evaluated = plan_case(inputs, of_this_size, kKeptPlans, options.threads, progress);
  progress(1);
  simulate_cases({&evaluated, 1}, options.threads);
  Planned planned = planned_of(evaluated);
  planned.layers = layers;
  if (!model.layers && !cluster.file.empty())
    planned.files = plan_files(model_files(config), config.replicas, cluster.file);
  return planned;
}

Trace simulate(const PricedPlan& priced, const Cluster& cluster) {
  const SimulationSettings settings;
  const Plan& plan = priced.plan;
  const DependencyGraph graph =
      dependencies(plan.schedule, stage_graph(priced.costs), plan.placement,
                   {settings.queues, settings.links, false});
  auto result = simulate(graph, priced.costs, plan.placement, cluster,
                         {.launch_overhead = settings.launch_overhead});
  if (std::holds_alternative<Deadlock>(result))
    throw RuntimeFault("the plan's schedule cannot run: it deadlocks");
  Trace trace = std::move(std::get<Trace>(result));
  add_memory(trace, graph, plan.schedule, priced.costs, plan.placement);
  add_link_loads(trace, priced.costs, plan.placement, cluster);
  return trace;
}

void write_timeline(const Trace& trace, const std::filesystem::path& file) {
  write_file(file, timeline_svg(trace, {.title = file.stem().string()}));
}

void save(const Planned& planned, const std::filesystem::path& folder, std::size_t contestant) {
  const PricedPlan& priced = planned.contestants.at(contestant).plan();
  Plan plan = priced.plan;
  if (planned.files) plan.files = seen_from(*planned.files, folder);
  write_plan_folder(folder, plan, priced.costs, *planned.layers);
  if (planned.certificate && contestant == 0)
    write_file(folder / "certificate.txt", certificate_text(*planned.certificate));
}

Judgement certify(const std::filesystem::path& folder, std::size_t threads) {
  tool::Judged judged = tool::certify_files(folder, threads, [](const std::string&) {});
  return {std::move(judged.text), judged.proven};
}

}  // namespace pfeife
