#include "planner/io/experiment/experiment_case.h"

#include "planner/io/files/quantity.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/io/model/operator_costs.h"
#include "planner/io/plan/plan_file.h"

namespace pfeife {
namespace {

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

YamlValue engines_value(const Request& request) {
  std::vector<YamlValue> engines{yaml_scalar("estimate")};
  if (request.simulate) engines.push_back(yaml_scalar("simulate"));
  if (request.measure) engines.push_back(yaml_scalar("measure"));
  return yaml_sequence(std::move(engines));
}

/// Keys in quotes, as they have colons or dots.
YamlValue with_quoted_keys(YamlValue map) {
  for (YamlEntry& entry : map.entries) entry.key = pfeife::quoted(entry.key);
  return map;
}

YamlValue operators_of(const Request& request) {
  if (request.model.operators.empty()) return {};
  return with_quoted_keys(operators_value(request.model.operators));
}

YamlValue cluster_value(const CaseConfig& config) {
  const YamlValue file = path_value(config.cluster);
  if (config.cluster_set.empty()) return file;
  std::vector<YamlEntry> set;
  for (const auto& [key, value] : config.cluster_set) set.push_back({key, value, {}});
  return yaml_map({{"file", file, {}}, {"set", with_quoted_keys(yaml_map(std::move(set))), {}}});
}

YamlValue cases_value(const Request& request) {
  const auto list_of = [](std::size_t number) {
    return yaml_sequence({yaml_scalar(std::to_string(number))});
  };
  std::vector<YamlEntry> entries{{"devices", list_of(request.devices), {}}};
  if (!request.microbatch_size_open())
    entries.push_back({"microbatches", list_of(request.microbatches), {}});
  return yaml_map(std::move(entries));
}

/// What runs here, or what has been run.
YamlValue measurement_value(const Request& request, const FieldList<MeasurementSettings>& all) {
  if (!request.measure && request.measurement.traces.empty()) return {};
  return (request.measure ? all.only({"steps", "rounds", "interval"}) : all.only({"traces"}))
      .value(request.measurement);
}

YamlValue file_value(const std::optional<std::filesystem::path>& file) {
  return file ? path_value(*file) : YamlValue{};
}

/// The case with each file as what it is called, so that lists write it.
CaseConfig with_called_files(CaseConfig config) {
  const auto call = [&](const std::string& key, std::filesystem::path& file) {
    file = file_name(config, key, file);
  };
  const auto call_given = [&](const std::string& key, std::optional<std::filesystem::path>& file) {
    if (file) call(key, *file);
  };
  call("model", config.model.file);
  call_given("skips", config.model.skips);
  call_given("profile", config.model.profile);
  call("cluster", config.cluster);
  call_given("plan.file", config.plan.file);
  call_given("plan.schedule", config.plan.schedule);
  std::vector<std::filesystem::path>& traces = config.measurement.traces;
  for (std::size_t t = 0; t < traces.size(); ++t)
    call("measurement.traces[" + std::to_string(t) + "]", traces[t]);
  return config;
}

/// What the model is made of, and the devices.
FieldList<Request> input_fields(const ListContext& context) {
  const auto model = std::make_shared<const FieldList<ModelFiles>>(model_fields(context));
  return {
      version_field<Request>(1),
      Field<Request>{"model", "a file, or a map",
                     "a `.pt2` archive, a `.csv` layer table, or another [format](#model), named "
                     "in a map",
                     [&context, model](const YamlNode& node, Request& request) {
                       if (node.is_map()) return model->read(node, request.model);
                       read_model_file(node, context, request.model);
                     },
                     [model](const Request& request) { return model->value(request.model); }}
          .always()
          .needed()
          .with_schema(either_schema({kTextSchema, model->schema()})),
      Field<Request>{"skips", "a file", "CSV of values that pass over layers, for a layer table",
                     [&context](const YamlNode& node, Request& request) {
                       request.model.skips =
                           input_file(node, *context.folder, "skips", *context.config);
                     },
                     [](const Request& request) { return file_value(request.model.skips); }}
          .by_default("none")
          .with_schema(kTextSchema),
      Field<Request>{"profile", "a file, or `measure`",
                     "a measured `profile.yaml` of the archive, in place of the roofline; it must "
                     "be of the same device kind, precision and microbatch size. `measure`: it is "
                     "[made on this machine](measuring.md)",
                     [&context](const YamlNode& node, Request& request) {
                       request.model.profile = measured_or_file(node, context, "profile",
                                                                context.config->profile_measured);
                     },
                     [](const Request& request) { return file_value(request.model.profile); }}
          .by_default("none")
          .with_schema(kTextSchema),
      Field<Request>{"operators", "a map",
                     "[costs of operators](operators.md) that the [operator table]"
                     "(../../planner/cost/README.md#the-operator-table) does not know, or costs to "
                     "use in its place",
                     [](const YamlNode& node, Request& request) {
                       request.model.operators = operator_costs(node);
                     },
                     operators_of}
          .by_default("none")
          .with_schema(map_schema({}, true)),
      field("parallel", &Request::replicas, replicas_map(),
            "of an architecture file, which mesh of devices: [meshes](meshes.md), with keys of its "
            "own. Of other models, how often the pipeline runs beside itself: "
            "[replicas](meshes.md#replicas)")
          .by_default("none"),
      Field<Request>{
          "cluster", "a file, `measure`, or a map",
          "the devices and their links. `measure`: the links between processes of this "
          "machine are measured, and its processors are the devices. A map replaces "
          "[keys of the file](#values-in-a-clusters-file)",
          [&context](const YamlNode& node, Request&) { read_cluster_input(node, context); },
          [](const Request& request) { return path_value(request.cluster); }}
          .always()
          .needed()
          .with_schema(
              either_schema({kTextSchema, map_schema({{"file", kTextSchema, "", true}}, true)}))};
}

/// How a step is done, and what is calibrated.
FieldList<Request> step_fields(const ListContext& context) {
  Field<Request> calibration{"calibration",
                             "a map, or a list of maps",
                             "what makes published figures those of a system that was measured: "
                             "[calibration](calibration.md)",
                             [&context](const YamlNode& node, Request&) {
                               read_calibration(node, *context.rules, *context.config);
                             },
                             [](const Request& request) {
                               if (request.calibration.empty()) return YamlValue{};
                               static const FieldList<Calibration> fields = calibration_fields({});
                               return list_value(request.calibration, [](const auto& entry) {
                                 return fields.value(entry);
                               });
                             },
                             true,
                             calibration_fields({}).keys()};
  Field<Request> cases{"cases",
                       "a map of lists",
                       "[which cases](#cases) are made of the config",
                       [](const YamlNode&, Request&) {},
                       cases_value,
                       false,
                       case_fields().keys(),
                       true};
  auto with = field("plan_with", &Request::plan_published,
                    word<bool>({{"calibrated", false}, {"published", true}}),
                    "`published`: plan and baselines are made with the figures as published, then "
                    "priced with the calibrated ones. No bound");
  with.value = [value = with.value](const Request& request) {
    return request.calibration.empty() ? YamlValue{} : value(request);
  };
  std::vector<SchemaEntry> swept;
  for (const auto& field : case_fields().fields())
    swept.push_back({field.key, list_schema(field.schema), field.about});
  return {std::move(calibration)
              .by_default("none")
              .with_schema(list_schema(calibration_fields({}).schema())),
          std::move(with).always().by_default("`calibrated`"),
          field("training", &Request::training, map_of(training_fields(context)),
                "[how a step is done](#training)")
              .always()
              .by_default("see there"),
          std::move(cases)
              .always()
              .by_default("one case")
              .with_schema(either_schema({words_schema({}), map_schema(swept, true)}))};
}

/// What is asked of a pipeline.
FieldList<Request> pipeline_fields(const ListContext& context) {
  const auto plans = std::make_shared<const FieldList<PlanSettings>>(plan_fields(context));
  const auto families = context.rules ? context.rules->families : std::vector<std::string>{};
  const auto baseline =
      std::make_shared<const FieldList<BaselineSettings>>(baseline_fields(families));
  const auto measured =
      std::make_shared<const FieldList<MeasurementSettings>>(measurement_fields(context));
  Field<Request> plan{"plan",
                      "a map",
                      "[where the plan comes from](plan.md), and among what it is chosen",
                      [plans](const YamlNode& node, Request& request) {
                        read_plan_settings(node, *plans, request.plan);
                      },
                      [plans](const Request& request) { return plan_value(*plans, request.plan); },
                      false,
                      plans->keys()};
  Field<Request> baselines{
      "baselines",
      "a list of families, or of maps",
      "[schedules to compare with](baselines.md), on cuts that other systems "
      "would make",
      [baseline](const YamlNode& node, Request& request) {
        request.baselines = baseline_settings(node, *baseline);
      },
      [](const Request& request) { return list_value(request.baselines, baseline_value); },
      true,
      baseline->keys()};
  Field<Request> measurement{
      "measurement",
      "a map",
      "[how plans are run](measuring.md) on this machine, or traces "
      "of a run",
      [measured](const YamlNode& node, Request& request) {
        measured->read(node, request.measurement);
      },
      [measured](const Request& request) { return measurement_value(request, *measured); },
      false,
      measured->keys()};
  auto select =
      field("select_by", &Request::select_by,
            word(words_of<SelectBy>({SelectBy::Estimate, SelectBy::Simulate, SelectBy::P95})),
            "[what the plan is chosen by](engines.md#chosen-by-what-is-simulated); "
            "`p95`: simulated, or estimated where nothing is simulated; needs jitter");
  select.value = [](const Request& request) { return yaml_scalar(to_string(chosen_by(request))); };
  Field<Request> what_if{
      "what_if",
      "a map",
      "[a slow rank](microbatches.md#a-slow-rank)",
      [](const YamlNode& node, Request& request) { what_if_fields().read(node, request.what_if); },
      [](const Request& request) { return what_if_fields().value(request.what_if); },
      false,
      what_if_fields().keys()};
  return {
      std::move(plan).always().by_default("a search").with_schema(plans->schema()),
      std::move(baselines).always().with_schema(
          list_schema(either_schema({baseline->find("family")->schema, baseline->schema()}))),
      field("simulation", &Request::simulation, map_of(simulation_fields()),
            "[queues, links and jitter](engines.md#keys)")
          .always()
          .by_default("see there"),
      std::move(what_if).by_default("none").with_schema(what_if_fields().schema()),
      Field<Request>{"engines", "`estimate`, `simulate`, `measure`",
                     "[what gives times](engines.md) of the plans; `estimate` always does",
                     read_engines, engines_value, true}
          .always()
          .with_schema(list_schema(words_schema({"estimate", "simulate", "measure"}))),
      std::move(measurement).always().by_default("see there").with_schema(measured->schema()),
      std::move(select).always().by_default("`simulate` where that is done (and `plan.search` "
                                            "is `planner`), else `estimate`"),
      Field<Request>{"step_below", "a time, `2 s`",
                     "below the table, the fewest devices with which a step is shorter, of the "
                     "cases' (`cases: {devices: [1, 2, 3, 4]}`), and why the next fewer do not "
                     "do",
                     [](const YamlNode&, Request&) {}, [](const Request&) { return YamlValue{}; }}
          .by_default("none")
          .with_schema(pattern_schema(pattern_of(Dimension::Time))),
      Field<Request>{"figures", "a list of maps",
                     "[figures of a paper](figures.md), drawn beside results.csv",
                     [](const YamlNode&, Request&) {}, [](const Request&) { return YamlValue{}; },
                     true, figure_fields().keys()}
          .by_default("none")
          .with_schema(list_schema(figure_fields().schema()))};
}

/// What neither the key of a given plan nor `training` says is the plan's.
void take_training(const std::optional<YamlNode>& node, const Training& of_plan,
                   StepSettings& training) {
  const auto says = [&](const char* key) { return node && node->find(key); };
  if (!says("precision")) training.precision = of_plan.precision;
  if (!says("optimizer")) training.optimizer = of_plan.optimizer;
  if (!says("mode")) training.mode = of_plan.mode;
  if (!says("microbatch_costs") && !says("lengths"))
    training.microbatch_costs = of_plan.microbatch_costs;
  if (!says("microbatch_size") && !says("global_batch"))
    training.microbatch_size = of_plan.microbatch_size;
}

}  // namespace

FieldList<Request> experiment_fields(const ListContext& context) {
  return input_fields(context) + step_fields(context) + pipeline_fields(context);
}

const FieldList<Request>& case_fields() {
  static const FieldList<Request> fields = {
      field("devices", &Request::devices, whole<std::size_t>(1, 1'000'000'000),
            "D, the number of pipeline ranks; a list makes a case of each")
          .by_default("all of the cluster"),
      field("microbatches", &Request::microbatches, whole<std::size_t>(1, 1'000'000),
            "N, microbatches a step; a list makes a case of each")
          .by_default("8")};
  return fields;
}

const std::vector<std::string>& pipeline_keys() {
  static const std::vector<std::string> keys{"plan",      "baselines",  "simulation", "engines",
                                             "select_by", "step_below", "figures",    "what_if"};
  return keys;
}

const FieldList<Request>& experiment_keys() {
  static const ListContext none;
  static const FieldList<Request> fields = experiment_fields(none);
  return fields;
}

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  for (const Section& section : sections(experiment_keys() + case_fields()))
    for (const std::string& key : section.keys)
      keys.push_back(section.key.empty() ? key : section.key + "." + key);
  return keys;
}

CaseConfig read_case(const YamlNode& root, const FieldList<Request>& fields, ListContext& context) {
  CaseConfig config;
  context.config = &config;
  const ExperimentRules& rules = *context.rules;
  add_places(root, config.places);
  const auto parallel = root.find("parallel");
  const YamlNode model = root.at("model");
  const auto file = model.is_map() ? model.find("file") : model;
  if (parallel && file && file->is_scalar() && is_architecture(file->as_string()))
    parallel->fail("a mesh is chosen once, by pfeife-exp, and its config has no cases of it");
  root.check_version(1);
  fields.read(root, config);
  if (config.cluster_measured && config.model.format == ModelFormat::Pt2 && !config.model.profile)
    throw ConfigError(config.place("cluster"),
                      "a measured cluster says nothing about how fast operators are; add "
                      "\"profile: measure\"");
  if (config.plan.file && rules.training_of_plan)
    take_training(root.find("training"), rules.training_of_plan(config.plan), config.training);
  if (root.find("plan_with") && config.calibration.empty())
    root.at("plan_with").fail("nothing is calibrated; add a calibration, or leave plan_with out");
  with_places(config, [&] { check(config); });
  return config;
}

std::vector<SweptKey> resolved(const CaseConfig& config) {
  const CaseConfig called = with_called_files(config);
  std::vector<SweptKey> keys;
  for (const auto& [key, value, where] : experiment_keys().value(called).entries)
    keys.push_back({key, one_line(key == "cluster" ? cluster_value(called) : value)});
  return keys;
}

std::string resolved_text(const CaseConfig& config) {
  std::string text;
  for (const auto& [key, value] : resolved(config)) text += key + ": " + value + "\n";
  return text;
}

Kind<bool> cuts_at_words() { return word<bool>({{"layers", false}, {"blocks", true}}); }

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
