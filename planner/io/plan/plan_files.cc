#include "planner/io/model/operator_costs.h"
#include "planner/io/plan/plan_file.h"

namespace pfeife {

const Words<ModelFormat>& model_formats() {
  static const Words<ModelFormat> formats =
      words_of<ModelFormat>({ModelFormat::Pt2, ModelFormat::Table, ModelFormat::PipeDream,
                             ModelFormat::Piper, ModelFormat::Mesh});
  return formats;
}

const FieldList<Replicas>& replica_fields() {
  static const FieldList<Replicas> fields = {
      field("dp", &Replicas::count, whole<std::int64_t>(1, 1 << 20),
            "how many pipelines, each on `cases.devices` devices")
          .always()
          .by_default("required"),
      field("zero", &Replicas::zero, whole<int>(0, 3),
            "what they divide, as `zero` of a [mesh](#keys)")
          .always(),
      field("overlap_reductions", &Replicas::overlap_reductions, flag(), "as of a [mesh](#keys)")
          .always()};
  return fields;
}

Kind<Replicas> replicas_map() {
  Kind<Replicas> map = map_of(replica_fields());
  map.read = [read = map.read](const YamlNode& node) {
    const Replicas replicas = read(node);
    if (!node.find("dp")) node.fail("how many replicas? Add dp, for example {dp: 2}");
    return replicas;
  };
  return map;
}

Kind<PlanFiles> files_map() {
  const auto of_model = [](const char* key, auto ModelFiles::*member, auto kind) {
    return of_part(&PlanFiles::model, field(key, member, std::move(kind), ""));
  };
  const Kind<std::filesystem::path> path{
      "", [](const YamlNode& node) { return std::filesystem::path(node.as_string()); },
      [](const std::filesystem::path& file) { return yaml_string(file.generic_string()); }};
  const FieldList<PlanFiles> fields{
      of_model("model", &ModelFiles::file, path).always().needed(),
      of_model("format", &ModelFiles::format, word(model_formats())).always().needed(),
      of_model("time_unit", &ModelFiles::time_unit, duration()),
      of_model("skips", &ModelFiles::skips, path),
      of_model("profile", &ModelFiles::profile, path),
      field("profile_digest", &PlanFiles::profile_digest, free_text(), ""),
      of_model("operators", &ModelFiles::operators,
               Kind<std::vector<OperatorCost>>{"", operator_costs, operators_value}),
      field("cluster", &PlanFiles::cluster, any_text(), "").always().needed(),
      field("parallel", &PlanFiles::replicas, replicas_map(), "")};
  Kind<PlanFiles> map = map_of(fields);
  map.read = [read = map.read](const YamlNode& node) {
    const PlanFiles files = read(node);
    if (files.model.profile) node.at("profile_digest");
    return files;
  };
  return map;
}

}  // namespace pfeife
