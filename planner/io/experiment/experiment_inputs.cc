// Files that an experiment names.
#include <algorithm>

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/plan/plan_files.h"

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

}  // namespace

InputFile input_file(const YamlNode& node, const std::filesystem::path& folder) {
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

std::vector<InputFile> trace_inputs(const YamlNode& node, const std::filesystem::path& folder) {
  std::vector<InputFile> files;
  for (const YamlNode& item : node.items_or_self()) {
    const std::filesystem::path path = (folder / item.as_string()).lexically_normal();
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(input_file(item, folder));
      continue;
    }
    const std::size_t before = files.size();
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (const std::string name = entry.path().filename().string();
          name.ends_with(".json") || name.ends_with(".json.gz"))
        files.push_back({item.as_string() + "/" + name, entry.path(), item.where()});
    if (files.size() == before)
      item.fail("\"" + path.string() + "\" has no files that end in .json or .json.gz");
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(),
              [](const InputFile& a, const InputFile& b) { return a.path < b.path; });
  }
  return files;
}

InputFile measured_or_file(const YamlNode& node, const std::filesystem::path& folder) {
  if (!node.is_scalar() || node.as_string() != "measure") {
    std::error_code error;
    if (node.is_scalar() && !std::filesystem::exists(folder / node.as_string(), error) &&
        !nearest_spelling(node.as_string(), {"measure"}).empty())
      node.fail("there is no file \"" + node.as_string() + "\"; did you mean measure?");
    return input_file(node, folder);
  }
  return {"measure", {}, node.where(), true};
}

InputFile cluster_input(const YamlNode& node, const std::filesystem::path& folder) {
  if (!node.is_map()) return measured_or_file(node, folder);
  node.check_keys({"file", "set"});
  InputFile file = measured_or_file(node.at("file"), folder);
  if (const auto replaced = node.find("set"))
    for (const auto& [path, value] : replaced->entries())
      file.replaced.emplace_back(path, value.value());
  return file;
}

ModelInput model_input(const YamlNode& root, const std::filesystem::path& folder) {
  const YamlNode node = root.at("model");
  ModelInput model;
  if (node.is_map()) {
    node.check_keys({"file", "format", "time_unit"});
    model.file = input_file(node.at("file"), folder);
    model.format = node.at("format").as_one_of<ModelFormat>(model_formats());
    read_time_unit(node, model);
  } else {
    model.file = input_file(node, folder);
    const std::string extension = model.file.path.extension().string();
    if (extension != ".pt2" && extension != ".csv")
      node.fail("the format of \"" + model.file.written +
                "\" does not follow from its name; write {file: " + model.file.written +
                ", format: ...} with pt2, table, pipedream or piper" +
                (extension == ".yaml" ? "; an architecture file needs the key `parallel`" : ""));
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

}  // namespace pfeife
