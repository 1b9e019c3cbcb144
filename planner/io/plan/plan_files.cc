#include "planner/io/plan/plan_files.h"

#include "planner/io/model/operator_costs.h"

namespace pfeife {

const std::vector<std::pair<std::string, ModelFormat>>& model_formats() {
  static const std::vector<std::pair<std::string, ModelFormat>> formats = [] {
    std::vector<std::pair<std::string, ModelFormat>> words;
    for (const ModelFormat format : {ModelFormat::Pt2, ModelFormat::Table, ModelFormat::PipeDream,
                                     ModelFormat::Piper, ModelFormat::Mesh})
      words.emplace_back(to_string(format), format);
    return words;
  }();
  return formats;
}

YamlValue replicas_value(const Replicas& replicas) {
  return yaml_map(
      {{"dp", yaml_scalar(std::to_string(replicas.count)), {}},
       {"zero", yaml_scalar(std::to_string(replicas.zero)), {}},
       {"overlap_reductions", yaml_scalar(replicas.overlap_reductions ? "true" : "false"), {}}});
}

Replicas read_replicas(const YamlNode& node) {
  node.check_keys({"dp", "zero", "overlap_reductions"});
  Replicas replicas;
  if (!node.find("dp")) node.fail("how many replicas? Add dp, for example {dp: 2}");
  replicas.count = node.at("dp").as_int(1, 1 << 20);
  if (const auto zero = node.find("zero")) replicas.zero = static_cast<int>(zero->as_int(0, 3));
  if (const auto overlap = node.find("overlap_reductions"))
    replicas.overlap_reductions = overlap->as_bool();
  return replicas;
}

YamlValue files_value(const PlanFiles& files) {
  const ModelFiles& model = files.model;
  const auto path = [](const std::filesystem::path& file) {
    return yaml_string(file.generic_string());
  };
  std::vector<YamlEntry> entries{{"model", path(model.file), {}},
                                 {"format", yaml_scalar(to_string(model.format)), {}}};
  if (model.time_unit.count() > 0)
    entries.push_back({"time_unit", yaml_amount(model.time_unit), {}});
  if (model.skips) entries.push_back({"skips", path(*model.skips), {}});
  if (model.profile) {
    entries.push_back({"profile", path(*model.profile), {}});
    entries.push_back({"profile_digest", yaml_string(files.profile_digest), {}});
  }
  if (!model.operators.empty())
    entries.push_back({"operators", operators_value(model.operators), {}});
  entries.push_back({"cluster", yaml_string(files.cluster), {}});
  if (files.replicas != Replicas{})
    entries.push_back({"parallel", replicas_value(files.replicas), {}});
  return yaml_map(std::move(entries));
}

PlanFiles read_files(const YamlNode& node) {
  node.check_keys({"model", "format", "time_unit", "skips", "profile", "profile_digest",
                   "operators", "cluster", "parallel"});
  PlanFiles files;
  ModelFiles& model = files.model;
  model.file = node.at("model").as_string();
  files.cluster = node.at("cluster").as_string();
  model.format = node.at("format").as_one_of<ModelFormat>(model_formats());
  if (const auto unit = node.find("time_unit")) model.time_unit = unit->as_duration();
  if (const auto skips = node.find("skips")) model.skips = skips->as_string();
  if (const auto profile = node.find("profile")) {
    model.profile = profile->as_string();
    files.profile_digest = node.at("profile_digest").as_string();
  }
  if (const auto operators = node.find("operators")) model.operators = operator_costs(*operators);
  if (const auto parallel = node.find("parallel")) files.replicas = read_replicas(*parallel);
  return files;
}

}  // namespace pfeife
