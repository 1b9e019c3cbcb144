// The cases of an experiment: the product of the lists under `cases`.
#include <algorithm>
#include <map>
#include <tuple>

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/yaml.h"

namespace pfeife {
namespace {

/// One key of `cases` with its values.
struct SweptAxis {
  std::string key;
  std::vector<YamlNode> values;
};

std::vector<SweptAxis> axes(const YamlNode& root) {
  const std::vector<std::string> keys = experiment_keys().keys();
  std::vector<SweptAxis> result;
  const auto cases = root.find("cases");
  if (!cases) return result;
  if (!cases->is_map())
    cases->fail("expected a map of lists such as {devices: [2, 4], microbatches: [8]}");
  for (const auto& [key, node] : cases->entries()) {
    const std::string first = key.substr(0, key.find_first_of(".["));
    const bool of_case = case_fields().find(key) != nullptr;
    const bool known = std::ranges::find(keys, first) != keys.end();
    if (!of_case && (!known || first == "cases" || first == "version" || first == "step_below" ||
                     first == "figures")) {
      std::vector<std::string> words = keys;
      words.insert(words.end(), {"devices", "microbatches"});
      const std::string nearest = nearest_spelling(key, words);
      if (known)
        cases->fail_at_key(key, "\"" + key +
                                    "\" is one for all cases; write it at the top of the file, "
                                    "outside of `cases`");
      cases->fail_at_key(
          key, "\"" + key +
                   "\" is neither devices, microbatches nor the path of another key, such as " +
                   "training.precision" +
                   (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"));
    }
    result.push_back({key, node.items_or_self()});
    if (result.back().values.empty()) node.fail("the list is empty, so there is no case");
  }
  return result;
}

/// Sets a key of the config. "cluster.links.nic.bandwidth" means a key of the cluster's file, which
/// becomes {file: ..., set: {links.nic.bandwidth: ...}}.
void set_key(YamlDocument& document, const std::string& path, YamlValue value,
             const std::string& label) {
  const std::string key = path.substr(0, path.find_first_of(".["));
  const auto cluster = key == "cluster" ? document.root().find(key) : std::nullopt;
  if (path == "cluster" && cluster && cluster->is_map() && value.kind == YamlValue::Kind::Scalar)
    return document.set("cluster.file", std::move(value), label);
  if (key != "cluster" || path == key || path == "cluster.file" || path.starts_with("cluster.set"))
    return document.set(path, std::move(value), label);
  if (cluster && !cluster->is_map()) {
    const YamlValue file = cluster->value();
    document.set(key, yaml_map({{"file", file, file.where}}), label);
  }
  document.set("cluster.set.\"" + path.substr(key.size() + 1) + "\"", std::move(value), label);
}

/// A list where one value is meant: somebody wants a case of each.
template <class Object>
void refuse_lists(const YamlNode& node, const FieldList<Object>& fields) {
  if (!node.is_map()) return;
  for (const auto& [key, value] : node.entries())
    if (const auto* const field = fields.find(key);
        field && !field->takes_list && value.is_sequence())
      value.fail(
          "expected one value, found a sequence; to have a case of each, write the list under "
          "`cases`: cases: {" +
          value.path() + ": [...]}");
}

void refuse_lists_outside_cases(const YamlNode& root) {
  refuse_lists(root, experiment_keys().only({"cluster", "profile", "select_by", "plan_with"}));
  const auto section = [&](const char* key, const auto& fields) {
    if (const auto node = root.find(key)) refuse_lists(*node, fields);
  };
  section("training", training_fields());
  section("simulation", simulation_fields());
  const ListContext none;
  section("plan", plan_fields(none));
  section("measurement", measurement_fields(none));
}

std::optional<YamlNode> value_of(const std::vector<SweptAxis>& axes,
                                 const std::vector<std::size_t>& point, const std::string& key) {
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (axes[a].key == key) return axes[a].values[point[a]];
  return std::nullopt;
}

/// Ranks and microbatches as `cases` says them, or the plan or schedule file.
void read_size(const std::vector<SweptAxis>& axes, const std::vector<std::size_t>& point,
               const ExperimentRules& rules, CaseConfig& config) {
  const bool fixed = !config.plan.searched();
  if (fixed)
    std::tie(config.devices, config.microbatches) = rules.ranks_and_microbatches(config.plan);
  if (config.plan.file && rules.order_of_plan) config.plan.order = rules.order_of_plan(config.plan);
  for (const auto& field : case_fields().fields()) {
    const auto node = value_of(axes, point, field.key);
    if (!node) continue;
    config.places[field.key] = node->where();
    const std::string given = one_line(field.value(config));
    field.read(*node, config);
    if (fixed && one_line(field.value(config)) != given)
      node->fail("\"" + given_file_name(config) + "\" is made for " + given + " " + field.key +
                 "; leave this out");
  }
}

CaseConfig make_case(const YamlDocument& document, const std::vector<SweptAxis>& axes,
                     const std::vector<std::size_t>& point, const FieldList<Request>& fields,
                     ListContext& context) {
  const ExperimentRules& rules = *context.rules;
  YamlDocument copy = document;
  std::vector<SweptKey> named, swept;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const YamlNode& value = axes[a].values[point[a]];
    named.push_back(
        {axes[a].key, value.is_scalar() ? value.as_string() : name_part(value.value())});
    if (case_fields().find(axes[a].key)) continue;
    if (axes[a].key != "model" && axes[a].key != "cluster")
      swept.push_back(
          {axes[a].key, value.is_scalar() ? value.as_string() : one_line(value.value())});
    set_key(copy, axes[a].key, value.value(), to_string(value.where()) + ": cases." + axes[a].key);
  }
  CaseConfig config = read_case(copy.root(), fields, context);
  read_size(axes, point, rules, config);
  const auto has = [&](const char* key) { return value_of(axes, point, key).has_value(); };
  static_cast<Request&>(config) =
      with_places(config, [&] { return with_sizes(config, rules.devices(config)); });
  if (!has("devices")) named.push_back({"devices", std::to_string(config.devices)});
  if (config.microbatch_size_open()) {
    if (!has("training.global_batch"))
      named.push_back({"global_batch", std::to_string(pipeline_batch(config))});
  } else if (!has("microbatches")) {
    named.push_back({"microbatches", std::to_string(config.microbatches)});
  }
  config.name = case_name(named);
  config.named = std::move(named);
  config.swept = std::move(swept);
  return config;
}

/// Steps to the next point of the product, the last axis fastest; false after the last one.
bool advance(std::vector<std::size_t>& point, const std::vector<SweptAxis>& axes) {
  for (std::size_t a = axes.size(); a-- > 0;) {
    if (++point[a] < axes[a].values.size()) return true;
    point[a] = 0;
  }
  return false;
}

}  // namespace

void set_keys(YamlDocument& document, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    auto [path, value] = YamlDocument::assignment(setting);
    const std::string label = to_string(value.where);
    set_key(document, path, std::move(value), label);
  }
}

std::optional<Nanoseconds> read_step_below(const YamlNode& root) {
  const auto limit = root.find("step_below");
  if (!limit) return std::nullopt;
  const Nanoseconds step = limit->as_duration();
  if (step.count() == 0) limit->fail("must be longer than 0");
  return step;
}

static Experiment experiment_of(const YamlDocument& document, const std::filesystem::path& file,
                                const ExperimentRules& rules) {
  Experiment experiment;
  experiment.name = folder_name(file.stem().string());
  document.root().check_version(1);
  check_sections(document.root(), sections(experiment_keys()));
  experiment.step_below = read_step_below(document.root());
  if (const auto figures = document.root().find("figures"))
    experiment.figures = read_figures(*figures);
  const std::vector<SweptAxis> product = axes(document.root());
  refuse_lists_outside_cases(document.root());
  std::size_t count = 1;
  for (const SweptAxis& axis : product)
    if ((count *= axis.values.size()) > 100'000)
      document.root().at("cases").fail("more than 100000 cases; split the experiment");
  std::vector<std::size_t> point(product.size(), 0);
  std::map<std::string, std::string> text_of;  // by name
  const std::filesystem::path folder = file.parent_path();
  ListContext context{&folder, &rules};
  const FieldList<Request> fields = experiment_fields(context);
  do {
    experiment.cases.push_back(make_case(document, product, point, fields, context));
    CaseConfig& added = experiment.cases.back();
    const std::string text = resolved_text(added);
    auto [named, is_new] = text_of.emplace(added.name, text);
    if (!is_new && named->second != text) {
      added.name = with_digest(added.name, text);
      is_new = text_of.emplace(added.name, text).second;
    }
    if (!is_new)
      document.root().at("cases").fail("two cases have the name \"" + added.name +
                                       "\"; is a value listed twice?");
    if (const auto& traces = added.measurement.traces; count > 1 && !traces.empty())
      throw ConfigError(added.place("measurement.traces"),
                        "measurement.traces are of one plan, and the experiment has " +
                            std::to_string(count) + " cases; write a config for each run");
  } while (advance(point, product));
  return experiment;
}

Experiment read_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& settings, const ExperimentRules& rules) {
  YamlDocument document = YamlDocument::read(file);
  set_keys(document, settings);
  return experiment_of(document, file, rules);
}

Experiment parse_experiment(std::string_view text, const std::filesystem::path& file,
                            const ExperimentRules& rules) {
  return experiment_of(YamlDocument::parse(text, file.filename().string()), file, rules);
}

}  // namespace pfeife
