#include "planner/io/plan/plan_files.h"

#include "planner/io/model/operator_costs.h"

namespace pfeife {

YamlValue files_value(const PlanFiles& files) {
  std::vector<YamlEntry> entries{{"model", yaml_string(files.model), {}},
                                 {"format", yaml_scalar(to_string(files.format)), {}}};
  if (files.time_unit.count() > 0)
    entries.push_back({"time_unit", yaml_amount(files.time_unit), {}});
  if (!files.skips.empty()) entries.push_back({"skips", yaml_string(files.skips), {}});
  if (!files.profile.empty()) {
    entries.push_back({"profile", yaml_string(files.profile), {}});
    entries.push_back({"profile_digest", yaml_string(files.profile_digest), {}});
  }
  if (!files.operators.empty())
    entries.push_back({"operators", operators_value(files.operators), {}});
  entries.push_back({"cluster", yaml_string(files.cluster), {}});
  return yaml_map(std::move(entries));
}

PlanFiles read_files(const YamlNode& node) {
  node.check_keys({"model", "format", "time_unit", "skips", "profile", "profile_digest",
                   "operators", "cluster"});
  PlanFiles files{.model = node.at("model").as_string(), .cluster = node.at("cluster").as_string()};
  files.format = node.at("format").as_one_of<ModelFormat>({{"pt2", ModelFormat::Pt2},
                                                           {"table", ModelFormat::Table},
                                                           {"pipedream", ModelFormat::PipeDream},
                                                           {"piper", ModelFormat::Piper},
                                                           {"mesh", ModelFormat::Mesh}});
  if (const auto unit = node.find("time_unit")) files.time_unit = unit->as_duration();
  if (const auto skips = node.find("skips")) files.skips = skips->as_string();
  if (const auto profile = node.find("profile")) {
    files.profile = profile->as_string();
    files.profile_digest = node.at("profile_digest").as_string();
  }
  if (const auto operators = node.find("operators")) files.operators = operator_costs(*operators);
  return files;
}

}  // namespace pfeife
