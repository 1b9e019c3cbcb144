#include "planner/io/experiment/experiment_case.h"

#include "planner/io/plan/plan_files.h"

namespace pfeife {
namespace {

/// What `training` does not say of a given plan.
void take_training(const Training& of_plan, StepSettings& training) {
  training.precision = of_plan.precision;
  training.optimizer = of_plan.optimizer;
  training.microbatch_size = of_plan.microbatch_size;
}

void read_training(const YamlNode& node, StepSettings& training) {
  node.check_keys({"precision", "optimizer", "clip_norm", "microbatch_size", "global_batch"});
  if (const auto precision = node.find("precision"))
    training.precision = precision->as_one_of<Precision>(precisions());
  if (const auto optimizer = node.find("optimizer"))
    training.optimizer = optimizer->as_one_of<Optimizer>({{"sgd", Optimizer::Sgd},
                                                          {"momentum", Optimizer::Momentum},
                                                          {"adam", Optimizer::Adam},
                                                          {"adamw", Optimizer::AdamW}});
  if (const auto norm = node.find("clip_norm")) {
    training.clip_norm = norm->as_double();
    if (!(training.clip_norm > 0))
      norm->fail("the largest norm that the gradients may have is above 0; leave it out for any");
  }
  if (const auto size = node.find("microbatch_size"))
    training.microbatch_size = size->as_int(1, 1'000'000);
  if (const auto batch = node.find("global_batch")) {
    training.global_batch = batch->as_int(1, 1'000'000);
    if (!node.find("microbatch_size")) training.microbatch_size.reset();
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

void read_engines(const YamlNode& node, Request& request) {
  enum class Engine { Estimate, Simulate, Measure };
  request.simulate = false;
  for (const YamlNode& item : node.items_or_self()) {
    const Engine engine = item.as_one_of<Engine>({{"estimate", Engine::Estimate},
                                                  {"simulate", Engine::Simulate},
                                                  {"measure", Engine::Measure}});
    if (engine == Engine::Measure) request.measure = true;
    if (engine == Engine::Simulate) request.simulate = true;
  }
}

void read_measurement(const YamlNode& node, const std::filesystem::path& folder,
                      CaseConfig& config) {
  node.check_keys({"steps", "rounds", "interval", "traces"});
  MeasurementSettings& measurement = config.measurement;
  if (const auto traces = node.find("traces")) read_traces(*traces, folder, config);
  if (const auto steps = node.find("steps")) measurement.steps = steps->as_count(3, 100'000);
  if (const auto rounds = node.find("rounds")) measurement.rounds = rounds->as_count(1, 999);
  if (const auto interval = node.find("interval")) measurement.interval = interval->as_double(0, 1);
}

}  // namespace

const std::vector<std::string>& experiment_keys() {
  static const std::vector<std::string> keys{
      "version",     "model",    "skips",     "parallel",   "profile",     "operators",
      "cluster",     "training", "cases",     "plan",       "baselines",   "simulation",
      "measurement", "engines",  "select_by", "step_below", "calibration", "plan_with"};
  return keys;
}

const std::vector<std::pair<std::string, Precision>>& precisions() {
  static const std::vector<std::pair<std::string, Precision>> words{
      {"fp32", Precision::Fp32},
      {"tf32", Precision::Tf32},
      {"bf16_amp", Precision::Bf16Amp},
      {"fp16_amp", Precision::Fp16Amp}};
  return words;
}

void read_pipeline_keys(const YamlNode& root, const std::filesystem::path& folder,
                        const ExperimentRules& rules, CaseConfig& config) {
  if (const auto plan = root.find("plan")) read_plan_settings(*plan, folder, rules, config);
  if (const auto baselines = root.find("baselines"))
    config.baselines = baseline_settings(*baselines, rules.families);
  if (const auto simulation = root.find("simulation"))
    config.simulation = simulation_settings(*simulation);
  if (const auto engines = root.find("engines")) read_engines(*engines, config);
  if (const auto select = root.find("select_by"))
    config.select_by = select->as_one_of<SelectBy>({{"estimate", SelectBy::Estimate},
                                                    {"simulate", SelectBy::Simulate},
                                                    {"p95", SelectBy::P95}});
}

CaseConfig read_case(const YamlNode& root, const std::filesystem::path& folder,
                     const ExperimentRules& rules) {
  root.check_keys(experiment_keys());
  root.check_version(1);
  CaseConfig config;
  add_places(root, config.places);
  if (const auto parallel = root.find("parallel")) {
    if (root.at("model").is_scalar() && root.at("model").as_string().ends_with(".yaml"))
      parallel->fail("a mesh is chosen once, by pfeife-exp, and its config has no cases of it");
    config.replicas = read_replicas(*parallel);
  }
  read_model(root, folder, config);
  read_cluster_input(root.at("cluster"), folder, config);
  if (config.cluster_measured && config.model.format == ModelFormat::Pt2 && !config.model.profile)
    throw ConfigError(config.place("cluster"),
                      "a measured cluster says nothing about how fast operators are; add "
                      "\"profile: measure\"");
  read_pipeline_keys(root, folder, rules, config);
  if (config.plan.file && rules.training_of_plan)
    take_training(rules.training_of_plan(config.plan), config.training);
  if (const auto training = root.find("training")) read_training(*training, config.training);
  if (const auto node = root.find("calibration")) read_calibration(*node, rules, config);
  if (const auto measurement = root.find("measurement"))
    read_measurement(*measurement, folder, config);
  if (const auto with = root.find("plan_with"))
    config.plan_published = with->as_one_of<bool>({{"published", true}, {"calibrated", false}});
  if (root.find("plan_with") && config.calibration.empty())
    root.at("plan_with").fail("nothing is calibrated; add a calibration, or leave plan_with out");
  with_places(config, [&] { check(config); });
  return config;
}

void add_places(const YamlNode& node, std::map<std::string, SourceLocation>& places) {
  places[node.path()] = node.where();
  if (node.is_map())
    for (const auto& [key, value] : node.entries())
      if (key != "cases") add_places(value, places);
  if (!node.is_sequence()) return;
  for (const YamlNode& item : node.items()) {
    add_places(item, places);
    if (item.is_scalar()) places[node.path() + "." + item.as_string()] = item.where();
  }
}

SourceLocation CaseConfig::place(std::string key) const {
  for (;;) {
    if (const auto found = places.find(key); found != places.end()) return found->second;
    if (key.empty()) return {};
    const std::size_t last = key.find_last_of(".[");
    key.resize(last == std::string::npos ? 0 : last);
  }
}

}  // namespace pfeife
