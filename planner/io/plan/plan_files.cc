#include "planner/io/plan/plan_files.h"

#include "planner/io/model/operator_costs.h"

namespace pfeife {

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
  if (files.replicas != Replicas{})
    entries.push_back({"parallel", replicas_value(files.replicas), {}});
  return yaml_map(std::move(entries));
}

PlanFiles read_files(const YamlNode& node) {
  node.check_keys({"model", "format", "time_unit", "skips", "profile", "profile_digest",
                   "operators", "cluster", "parallel"});
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
  if (const auto parallel = node.find("parallel")) files.replicas = read_replicas(*parallel);
  return files;
}

}  // namespace pfeife
