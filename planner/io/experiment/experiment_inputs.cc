// Files that an experiment names.
#include <algorithm>

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/files/atomic_file.h"
#include "planner/io/files/open_file.h"
#include "planner/io/files/shipped_files.h"
#include "planner/io/plan/plan_file.h"

namespace pfeife {
namespace {

/// Names of the files beside the one that is missing, for the suggestion.
std::string nearest_file(const std::filesystem::path& missing) {
  const std::filesystem::path folder =
      missing.has_parent_path() ? missing.parent_path() : std::filesystem::path(".");
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string nearest = nearest_spelling(missing.filename().string(), names);
  if (nearest.empty()) return "";
  return "; did you mean \"" + (missing.parent_path() / nearest).string() + "\"?";
}

}  // namespace

std::filesystem::path input_file(const YamlNode& node, const std::filesystem::path& folder) {
  if (node.as_string().empty()) node.fail("a file name is missing here");
  const std::filesystem::path path = (folder / node.as_string()).lexically_normal();
  if (!is_there(path))
    node.fail("there is no file \"" + path.string() +
              "\" (paths are relative to the config's folder)" + nearest_file(path));
  try {
    require_regular_file(path);
  } catch (const ConfigError& error) {
    node.fail(error.what());
  }
  return path;
}

std::filesystem::path input_file(const YamlNode& node, const std::filesystem::path& folder,
                                 const std::string& key, CaseConfig& config) {
  config.file_names[key] = node.as_string();
  const std::filesystem::path named = (folder / node.as_string()).lexically_normal();
  if (is_folder(named))  // of a plan
    for (const auto& [of, name] :
         {std::pair("plan.file", "plan.yaml"), std::pair("plan.schedule", "schedule.csv")})
      if (key == of && is_there(named / name)) return named / name;
  if (!is_there(named)) {
    std::optional<std::filesystem::path> shipped;
    if (key == "model") shipped = shipped_file(node.as_string(), kShippedModels);
    if (key == "cluster") shipped = shipped_file(node.as_string(), kShippedClusters);
    if (shipped) return *shipped;
  }
  return input_file(node, folder);
}

std::filesystem::path measured_or_file(const YamlNode& node, const ListContext& context,
                                       const std::string& key, bool& measured) {
  measured = node.is_scalar() && node.as_string() == "measure";
  if (!measured) {
    std::error_code error;
    if (node.is_scalar() && !std::filesystem::exists(*context.folder / node.as_string(), error) &&
        !nearest_spelling(node.as_string(), {"measure"}).empty())
      node.fail("there is no file \"" + node.as_string() + "\"; did you mean measure?");
    return input_file(node, *context.folder, key, *context.config);
  }
  context.config->file_names[key] = "measure";
  return {};
}

YamlValue path_value(const std::filesystem::path& file) {
  return file.empty() ? YamlValue{} : yaml_string(file.string());
}

FieldList<ModelFiles> model_fields(const ListContext& context) {
  Kind<Nanoseconds> unit = duration();
  unit.read = [](const YamlNode& node) {
    const Nanoseconds unit = node.as_duration();
    if (unit.count() == 0) node.fail("must be longer than 0");
    return unit;
  };
  return {
      Field<ModelFiles>{"file", "a file", "the model",
                        [&context](const YamlNode& node, ModelFiles& model) {
                          model.file = input_file(node, *context.folder, "model", *context.config);
                        },
                        [](const ModelFiles& model) { return path_value(model.file); }}
          .always()
          .needed()
          .with_schema(kTextSchema),
      field("format", &ModelFiles::format, word(model_formats()),
            "`pt2`: an archive; `table`: layers as CSV; `pipedream`, `piper`: [published profiles]"
            "(../profiles/README.md); `mesh`: a mesh's pipeline")
          .always()
          .needed(),
      field("time_unit", &ModelFiles::time_unit, unit,
            "what the times of a piper profile count, `1 ms`; piper needs it")
          .by_default("none")};
}

void read_model_file(const YamlNode& node, const ListContext& context, ModelFiles& model) {
  model.file = input_file(node, *context.folder, "model", *context.config);
  const std::string extension = model.file.extension().string();
  const std::string written = context.config->file_names.at("model");
  if (extension != ".pt2" && extension != ".csv")
    node.fail("the format of \"" + written + "\" does not follow from its name; write {file: " +
              written + ", format: ...} with pt2, table, pipedream or piper" +
              (extension == ".yaml" ? "; an architecture file needs the key `parallel`" : ""));
  model.format = extension == ".pt2" ? ModelFormat::Pt2 : ModelFormat::Table;
}

void read_traces(const YamlNode& node, const ListContext& context,
                 MeasurementSettings& measurement) {
  const std::filesystem::path& folder = *context.folder;
  std::vector<std::pair<std::filesystem::path, std::string>> files;  // with what they are called
  for (const YamlNode& item : node.items_or_self()) {
    const std::filesystem::path path = (folder / item.as_string()).lexically_normal();
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.emplace_back(input_file(item, folder), item.as_string());
      continue;
    }
    const std::size_t before = files.size();
    for (const std::filesystem::path& entry : entries_of(path))
      if (const std::string name = entry.filename().string();
          name.ends_with(".json") || name.ends_with(".json.gz"))
        files.emplace_back(entry, item.as_string() + "/" + name);
    if (files.size() == before)
      item.fail("\"" + path.string() + "\" has no files that end in .json or .json.gz");
  }
  for (auto& [path, name] : files) {
    context.config
        ->file_names["measurement.traces[" + std::to_string(measurement.traces.size()) + "]"] =
        name;
    measurement.traces.push_back(std::move(path));
  }
}

void read_cluster_input(const YamlNode& node, const ListContext& context) {
  CaseConfig& config = *context.config;
  const auto read_file = [&](const YamlNode& file) {
    config.cluster = measured_or_file(file, context, "cluster", config.cluster_measured);
  };
  if (!node.is_map()) return read_file(node);
  node.check_keys({"file", "set"});
  read_file(node.at("file"));
  if (const auto replaced = node.find("set"))
    for (const auto& [path, value] : replaced->entries())
      config.cluster_set.emplace_back(path, value.value());
}

}  // namespace pfeife
