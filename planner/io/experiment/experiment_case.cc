#include "planner/io/experiment/experiment_case.h"

#include "planner/io/model/operator_costs.h"
#include "planner/io/plan/plan_files.h"

namespace pfeife {
namespace {

/// Of a given plan: what `training` does not say.
void take_training(const Training& training, CaseConfig& config) {
  config.precision = training.precision;
  config.optimizer = training.optimizer;
  config.microbatch_size = training.microbatch_size;
}

void read_training(const YamlNode& node, CaseConfig& config) {
  node.check_keys({"precision", "optimizer", "clip_norm", "microbatch_size", "global_batch"});
  if (const auto precision = node.find("precision")) {
    config.precision_where = precision->where();
    config.precision = precision->as_one_of<Precision>({{"fp32", Precision::Fp32},
                                                        {"tf32", Precision::Tf32},
                                                        {"bf16_amp", Precision::Bf16Amp},
                                                        {"fp16_amp", Precision::Fp16Amp}});
  }
  if (const auto optimizer = node.find("optimizer"))
    config.optimizer = optimizer->as_one_of<Optimizer>({{"sgd", Optimizer::Sgd},
                                                        {"momentum", Optimizer::Momentum},
                                                        {"adam", Optimizer::Adam},
                                                        {"adamw", Optimizer::AdamW}});
  if (const auto norm = node.find("clip_norm")) {
    config.clip_norm = norm->as_double();
    if (!(config.clip_norm > 0))
      norm->fail("the largest norm that the gradients may have is above 0; leave it out for any");
  }
  if (const auto size = node.find("microbatch_size")) {
    config.microbatch_size = size->as_int(1, 1'000'000);
    config.microbatch_size_where = size->where();
  }
  if (const auto batch = node.find("global_batch")) {
    config.global_batch = batch->as_int(1, 1'000'000);
    config.global_batch_where = batch->where();
    if (!node.find("microbatch_size")) config.microbatch_size.reset();
  }
}

JitterSettings jitter_settings(const YamlNode& node) {
  node.check_keys({"cv", "drift", "repetitions", "seed"});
  JitterSettings jitter;
  jitter.cv = node.at("cv").as_double(0, 1);
  if (const auto drift = node.find("drift")) jitter.drift = drift->as_double(0, 1);
  if (const auto repetitions = node.find("repetitions"))
    jitter.repetitions = repetitions->as_count(1, 1'000'000);
  if (const auto seed = node.find("seed"))
    jitter.seed = static_cast<std::uint64_t>(seed->as_int(0));
  return jitter;
}

SimulationSettings simulation_settings(const YamlNode& node) {
  node.check_keys({"queues", "links", "launch_overhead", "jitter"});
  SimulationSettings simulation;
  if (const auto queues = node.find("queues"))
    simulation.queues = queues->as_one_of<Queues>({{"none", Queues::None},
                                                   {"edge", Queues::Edge},
                                                   {"pair", Queues::Pair},
                                                   {"rank", Queues::Rank}});
  if (const auto links = node.find("links"))
    simulation.links =
        links->as_one_of<Links>({{"delay", Links::Delay}, {"shared", Links::Shared}});
  if (const auto overhead = node.find("launch_overhead"))
    simulation.launch_overhead = overhead->as_duration(), simulation.launch_overhead_given = true;
  if (const auto jitter = node.find("jitter"); jitter && !jitter->is_null())
    simulation.jitter = jitter_settings(*jitter);
  return simulation;
}

void read_engines(const YamlNode& node, CaseConfig& config) {
  enum class Engine { Estimate, Simulate, Measure };
  config.simulate = false;
  for (const YamlNode& item : node.items_or_self()) {
    const Engine engine = item.as_one_of<Engine>({{"estimate", Engine::Estimate},
                                                  {"simulate", Engine::Simulate},
                                                  {"measure", Engine::Measure}});
    if (engine == Engine::Measure) {
      config.measure = true;
      config.measure_where = item.where();
    }
    if (engine == Engine::Simulate) config.simulate = true;
  }
}

/// What no pipeline on this machine can do is refused here; what depends on the cluster, by those
/// who know it.
void check_measure(const CaseConfig& config) {
  if (!config.measure) return;
  if (config.replicas.count > 1)
    throw ConfigError(config.measure_where,
                      "\"measure\" runs one pipeline; leave it out, or `parallel` (pfeife-run --dp "
                      "runs a plan on replicas)");
  if (config.model.format != ModelFormat::Pt2)
    throw ConfigError(config.measure_where,
                      "\"measure\" runs the model, and a " + to_string(config.model.format) +
                          " model has only times; name a .pt2 archive, or leave \"measure\" out");
  if (config.precision == Precision::Tf32)
    throw ConfigError(config.precision_where,
                      "\"measure\" among the engines needs a precision that processors have: fp32, "
                      "bf16_amp or fp16_amp, found tf32");
}

void read_select_by(const YamlNode& node, CaseConfig& config) {
  config.select_by = node.as_one_of<SelectBy>(
      {{"estimate", SelectBy::Estimate}, {"simulate", SelectBy::Simulate}, {"p95", SelectBy::P95}});
  if (config.select_by == SelectBy::Simulate && !config.simulate)
    node.fail("choosing by simulation needs \"simulate\" among the engines");
  if (config.select_by == SelectBy::P95 && !config.simulation.jitter)
    node.fail("p95 needs simulation.jitter, for example {cv: 0.02, repetitions: 100, seed: 1}");
}

}  // namespace

const std::vector<std::string>& experiment_keys() {
  static const std::vector<std::string> keys{
      "version",     "model",    "skips",     "parallel",   "profile",     "operators",
      "cluster",     "training", "cases",     "plan",       "baselines",   "simulation",
      "measurement", "engines",  "select_by", "step_below", "calibration", "plan_with"};
  return keys;
}

CaseConfig read_case(const YamlNode& root, const std::filesystem::path& folder,
                     const ExperimentRules& rules) {
  root.check_keys(experiment_keys());
  root.check_version(1);
  CaseConfig config;
  config.where = root.where();
  if (const auto parallel = root.find("parallel")) {
    if (root.at("model").is_scalar() && root.at("model").as_string().ends_with(".yaml"))
      parallel->fail("a mesh is chosen once, by pfeife-exp, and its config has no cases of it");
    config.replicas = read_replicas(*parallel);
    config.replicas_where = parallel->where();
  }
  config.model = model_input(root, folder);
  if (config.replicas.count > 1 && config.model.format == ModelFormat::Mesh)
    throw ConfigError(config.replicas_where,
                      "a mesh file has its replicas; leave `parallel` out, or choose the mesh with "
                      "an architecture file");
  if (const auto profile = root.find("profile")) {
    if (config.model.format != ModelFormat::Pt2)
      profile->fail("a " + to_string(config.model.format) +
                    " model has times of its own; leave the profile out");
    config.profile = measured_or_file(*profile, folder);
  }
  if (const auto operators = root.find("operators")) {
    if (config.model.format != ModelFormat::Pt2)
      operators->fail("a " + to_string(config.model.format) +
                      " model has times of its own and no operators; leave this out");
    config.operators = operator_costs(*operators);
  }
  config.cluster = cluster_input(root.at("cluster"), folder);
  if (config.cluster.measured && config.model.format == ModelFormat::Pt2 && !config.profile)
    throw ConfigError(config.cluster.where,
                      "a measured cluster says nothing about how fast operators are; add "
                      "\"profile: measure\"");
  if (const auto plan = root.find("plan")) config.plan = plan_settings(*plan, folder, rules);
  if (config.plan.source == PlanSettings::Source::PlanFile && rules.training_of_plan)
    take_training(rules.training_of_plan(config.plan), config);
  if (const auto training = root.find("training")) read_training(*training, config);
  if (const auto node = root.find("calibration")) read_calibrations(*node, rules, config);
  if (config.model.format != ModelFormat::Pt2 && config.plan.order != "captured")
    root.at("plan").at("order").fail("the layers of a " + to_string(config.model.format) +
                                     " model have one order; leave this out");
  if (config.model.format != ModelFormat::Pt2 && config.plan.at_blocks)
    throw ConfigError(config.plan.where,
                      "plan: a " + to_string(config.model.format) +
                          " model has no modules, so no blocks; take an archive, "
                          "or leave cuts_at and for out");
  if (const auto baselines = root.find("baselines"))
    config.baselines = baseline_settings(*baselines, rules.families);
  if (const auto simulation = root.find("simulation"))
    config.simulation = simulation_settings(*simulation);
  if (const auto engines = root.find("engines")) read_engines(*engines, config);
  check_measure(config);
  if (const auto measurement = root.find("measurement")) {
    measurement->check_keys({"steps", "rounds", "interval", "traces"});
    if (const auto traces = measurement->find("traces")) {
      if (config.measure)
        traces->fail("the traces are of a run that has been; leave \"measure\" out of the engines");
      config.measurement.traces = trace_inputs(*traces, folder);
    }
    if (const auto steps = measurement->find("steps"))
      config.measurement.steps = steps->as_count(3, 100'000);
    if (const auto rounds = measurement->find("rounds"))
      config.measurement.rounds = rounds->as_count(1, 999);
    if (const auto interval = measurement->find("interval"))
      config.measurement.interval = interval->as_double(0, 1);
  }
  if (config.simulate && !config.plan.reference) config.select_by = SelectBy::Simulate;
  const auto select = root.find("select_by");
  if (select) read_select_by(*select, config);
  if (const auto with = root.find("plan_with")) read_plan_with(*with, select.has_value(), config);
  return config;
}

}  // namespace pfeife
