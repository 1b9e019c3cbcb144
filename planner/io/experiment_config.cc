#include "planner/io/experiment_config.h"

#include <algorithm>
#include <set>

#include "planner/io/experiment_case.h"

namespace pfeife {
namespace {

using Path = std::filesystem::path;

/// Names of the files beside the one that is missing, for the suggestion.
std::string nearest_file(const Path& missing) {
  const Path folder = missing.has_parent_path() ? missing.parent_path() : Path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string nearest = nearest_spelling(missing.filename().string(), names);
  if (nearest.empty()) return "";
  return "; did you mean \"" + (missing.parent_path() / nearest).string() + "\"?";
}

/// The file that a config in `folder` names.
InputFile input_file(const YamlNode& node, const Path& folder) {
  InputFile file;
  file.written = node.as_string();
  if (file.written.empty()) node.fail("a file name is missing here");
  file.path = (folder / file.written).lexically_normal();
  file.where = node.where();
  std::error_code error;
  if (!std::filesystem::exists(file.path, error))
    node.fail("there is no file \"" + file.path.string() +
              "\" (paths are relative to the config's folder)" + nearest_file(file.path));
  if (!std::filesystem::is_regular_file(file.path, error))
    node.fail("\"" + file.path.string() + "\" is not a file");
  return file;
}

/// A file, or `measure`: made on this machine.
InputFile measured_or_file(const YamlNode& node, const Path& folder) {
  if (!node.is_scalar() || node.as_string() != "measure") {
    std::error_code error;
    if (node.is_scalar() && !std::filesystem::exists(folder / node.as_string(), error) &&
        !nearest_spelling(node.as_string(), {"measure"}).empty())
      node.fail("there is no file \"" + node.as_string() + "\"; did you mean measure?");
    return input_file(node, folder);
  }
  return {"measure", {}, node.where(), true};
}

/// Piper's published files count in different units, and do not say in which.
void read_time_unit(const YamlNode& node, ModelInput& model) {
  const auto unit = node.find("time_unit");
  if (model.format == ModelFormat::Piper && !unit)
    node.fail("a piper profile needs what its times count, for example time_unit: 1 ms");
  if (model.format != ModelFormat::Piper && unit)
    node.fail_at_key("time_unit", "time_unit belongs to piper profiles only");
  if (!unit) return;
  model.time_unit = unit->as_duration();
  if (model.time_unit.count() == 0) unit->fail("must be longer than 0");
}

ModelInput model_input(const YamlNode& root, const Path& folder) {
  const YamlNode node = root.at("model");
  ModelInput model;
  if (node.is_map()) {
    node.check_keys({"file", "format", "time_unit"});
    model.file = input_file(node.at("file"), folder);
    model.format = node.at("format").as_one_of<ModelFormat>({{"pt2", ModelFormat::Pt2},
                                                             {"table", ModelFormat::Table},
                                                             {"pipedream", ModelFormat::PipeDream},
                                                             {"piper", ModelFormat::Piper}});
    read_time_unit(node, model);
  } else {
    model.file = input_file(node, folder);
    const std::string extension = model.file.path.extension().string();
    if (extension != ".pt2" && extension != ".csv")
      node.fail("the format of \"" + model.file.written +
                "\" does not follow from its name; write {file: " + model.file.written +
                ", format: ...} with pt2, table, pipedream or piper");
    model.format = extension == ".pt2" ? ModelFormat::Pt2 : ModelFormat::Table;
  }
  if (const auto skips = root.find("skips")) {
    if (model.format != ModelFormat::Table)
      root.fail_at_key("skips", "skips belong to a layer table; a " + to_string(model.format) +
                                    " model has its own");
    model.skips = input_file(*skips, folder);
  }
  return model;
}

void read_training(const YamlNode& node, CaseConfig& config) {
  node.check_keys({"precision", "optimizer", "microbatch_size", "global_batch"});
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
  if (const auto size = node.find("microbatch_size")) {
    config.microbatch_size = size->as_int(1, 1'000'000);
    config.microbatch_size_where = size->where();
  }
  if (const auto batch = node.find("global_batch")) {
    config.global_batch = batch->as_int(1, 1'000'000);
    config.global_batch_where = batch->where();
  }
}

std::vector<std::string> family_names(const YamlNode& node,
                                      const std::vector<std::string>& families) {
  std::vector<std::pair<std::string, std::string>> words;
  for (const std::string& family : families) words.emplace_back(family, family);
  std::vector<std::string> names;
  for (const YamlNode& item : node.items_or_self()) {
    names.push_back(item.as_one_of<std::string>(words));
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      item.fail("\"" + names.back() + "\" is here twice");
  }
  return names;
}

std::vector<std::int32_t> cut_list(const YamlNode& node) {
  std::vector<std::int32_t> cuts;
  for (const YamlNode& item : node.items()) {
    cuts.push_back(static_cast<std::int32_t>(item.as_int(0, 1'000'000)));
    if (cuts.size() > 1 && cuts[cuts.size() - 2] >= cuts.back())
      item.fail("cuts must increase from left to right");
  }
  return cuts;
}

void read_cuts(const YamlNode& node, PlanSettings& plan) {
  plan.cuts_where = node.where();
  if (node.is_sequence()) {
    plan.cuts = PlanSettings::Cuts::Given;
    plan.given_cuts = cut_list(node);
    return;
  }
  using Cuts = PlanSettings::Cuts;
  plan.cuts = node.as_one_of<Cuts>({{"search", Cuts::Search}, {"each_layer", Cuts::EachLayer}});
}

void read_rank_devices(const YamlNode& node, PlanSettings& plan) {
  plan.devices_where = node.where();
  if (node.is_scalar() && node.as_string() == "search") {
    plan.search_devices = true;
    return;
  }
  if (!node.is_sequence()) node.fail("expected the device of each rank, such as [0, 1], or search");
  for (const YamlNode& item : node.items()) plan.devices.emplace_back(item.as_int(0, 1'000'000));
}

void read_search(const YamlNode& node, const ExperimentRules& rules, PlanSettings& plan) {
  if (const auto families = node.find("families")) {
    plan.families_where = families->where();
    std::vector<std::string> words = rules.families;
    words.insert(words.end(), {"all", "certified"});
    plan.families = family_names(*families, words);
    const bool grouped =
        std::any_of(plan.families.begin(), plan.families.end(),
                    [](const std::string& name) { return name == "all" || name == "certified"; });
    if (plan.families.empty()) families->fail("name at least one family, or \"all\"");
    if (grouped && plan.families.size() > 1)
      families->fail("\"all\" and \"certified\" stand alone");
  }
  if (const auto loops = node.find("loops")) {
    std::set<std::size_t> values;
    for (const YamlNode& item : loops->items_or_self()) values.insert(item.as_count(1, 1000));
    if (values.empty()) loops->fail("name at least one number of stages a device");
    plan.loops.assign(values.begin(), values.end());
  }
  if (const auto search = node.find("search"))
    plan.reference = search->as_one_of<bool>({{"planner", false}, {"reference", true}});
  if (const auto iterations = node.find("iterations"))
    if (!iterations->is_scalar() || iterations->as_string() != "default")
      plan.iterations = iterations->as_count(1);
  if (const auto cuts = node.find("cuts")) read_cuts(*cuts, plan);
  if (const auto order = node.find("order")) {
    std::vector<std::pair<std::string, std::string>> words{{"search", "search"}};
    for (const std::string& name : rules.orders) words.emplace_back(name, name);
    plan.order = order->as_one_of<std::string>(words);
  }
  if (const auto recompute = node.find("recompute")) {
    using Recompute = PlanSettings::Recompute;
    plan.recompute = recompute->as_one_of<Recompute>({{"none", Recompute::None},
                                                      {"if_needed", Recompute::IfNeeded},
                                                      {"full", Recompute::Full},
                                                      {"choose", Recompute::Choose}});
  }
  if (!plan.reference) return;
  for (const char* key : {"families", "cuts", "iterations", "recompute", "order"})
    if (node.find(key))
      node.fail_at_key(key, std::string("search: reference has its own schedules, cuts and effort; "
                                        "leave plan.") +
                                key + " out");
}

PlanSettings plan_settings(const YamlNode& node, const Path& folder, const ExperimentRules& rules) {
  PlanSettings plan;
  plan.where = node.where();
  if (node.is_map() && node.find("file")) {
    node.check_keys({"file", "reserve"});
    plan.source = PlanSettings::Source::PlanFile;
    plan.file = input_file(node.at("file"), folder);
  } else if (node.is_map() && node.find("schedule")) {
    node.check_keys({"schedule", "cuts", "reserve", "devices"});
    plan.source = PlanSettings::Source::ScheduleFile;
    plan.file = input_file(node.at("schedule"), folder);
    read_cuts(node.at("cuts"), plan);
    if (plan.cuts == PlanSettings::Cuts::Search)
      node.at("cuts").fail(
          "a given schedule needs given cuts: a list of cut candidates, or each_layer");
  } else {
    node.check_keys({"families", "loops", "search", "iterations", "reserve", "cuts", "recompute",
                     "order", "devices", "file", "schedule"});
    read_search(node, rules, plan);
  }
  if (const auto reserve = node.find("reserve")) plan.reserve = reserve->as_bytes();
  if (const auto devices = node.find("devices")) read_rank_devices(*devices, plan);
  if (plan.search_devices && plan.source == PlanSettings::Source::ScheduleFile)
    node.at("devices").fail(
        "devices are searched together with the schedule; name the device of "
        "each rank of a given one");
  return plan;
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
    simulation.launch_overhead = overhead->as_duration();
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
  if (config.model.format != ModelFormat::Pt2)
    throw ConfigError(config.measure_where,
                      "\"measure\" runs the model, and a " + to_string(config.model.format) +
                          " model has only times; name a .pt2 archive, or leave \"measure\" out");
  if (config.precision == Precision::Tf32 || config.precision == Precision::Fp16Amp)
    throw ConfigError(config.precision_where,
                      "\"measure\" among the engines needs a precision that processors have: fp32 "
                      "or bf16_amp, found " +
                          to_string(config.precision));
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
      "version", "model",     "skips",      "profile",     "cluster", "training", "cases",
      "plan",    "baselines", "simulation", "measurement", "engines", "select_by"};
  return keys;
}

CaseConfig read_case(const YamlNode& root, const Path& folder, const ExperimentRules& rules) {
  root.check_keys(experiment_keys());
  if (const YamlNode version = root.at("version"); version.as_int() != 1)
    version.fail("this program reads version 1, found " + version.as_string());
  CaseConfig config;
  config.where = root.where();
  config.model = model_input(root, folder);
  if (const auto profile = root.find("profile")) {
    if (config.model.format != ModelFormat::Pt2)
      profile->fail("a " + to_string(config.model.format) +
                    " model has times of its own; leave the profile out");
    config.profile = measured_or_file(*profile, folder);
  }
  config.cluster = measured_or_file(root.at("cluster"), folder);
  if (config.cluster.measured && config.model.format == ModelFormat::Pt2 && !config.profile)
    throw ConfigError(config.cluster.where,
                      "a measured cluster says nothing about how fast operators are; add "
                      "\"profile: measure\"");
  if (const auto training = root.find("training")) read_training(*training, config);
  if (const auto plan = root.find("plan")) config.plan = plan_settings(*plan, folder, rules);
  if (config.model.format != ModelFormat::Pt2 && config.plan.order != "captured")
    root.at("plan").at("order").fail("the layers of a " + to_string(config.model.format) +
                                     " model have one order; leave this out");
  if (const auto baselines = root.find("baselines"))
    config.baselines = family_names(*baselines, rules.families);
  if (const auto simulation = root.find("simulation"))
    config.simulation = simulation_settings(*simulation);
  if (const auto engines = root.find("engines")) read_engines(*engines, config);
  check_measure(config);
  if (const auto measurement = root.find("measurement")) {
    measurement->check_keys({"steps"});
    if (const auto steps = measurement->find("steps"))
      config.measurement.steps = steps->as_count(3, 100'000);
  }
  if (const auto select = root.find("select_by")) read_select_by(*select, config);
  return config;
}

}  // namespace pfeife
