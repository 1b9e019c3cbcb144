#include "planner/ir/request/request.h"

namespace pfeife {

std::string to_string(BaselineSettings::Cuts cuts) {
  using Cuts = BaselineSettings::Cuts;
  switch (cuts) {
    case Cuts::EqualTime:
      return "equal_time";
    case Cuts::EqualParameters:
      return "equal_parameters";
    case Cuts::EqualLayers:
      return "equal_layers";
    case Cuts::Search:
      return "search";
    case Cuts::Reference:
      return "reference";
    case Cuts::Given:
      return "given";
  }
  return "";
}

std::string BaselineSettings::name() const {
  if (!called.empty()) return called;
  std::string text = family;
  if (cuts != Cuts::EqualTime) text += "_" + to_string(cuts);
  if (recompute != Recompute::None) text += "_" + to_string(recompute);
  if (recompute_except_last) text += "_except_last";
  return text;
}

MeshQuestion usual_mesh() {
  MeshQuestion question;
  MeshRun& run = question.run;
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  run.sequence_parallel = run.scatter_gather = run.overlap_reductions = true;
  run.type = DType::BFloat16;
  return question;
}

std::string to_string(SelectBy select_by) {
  switch (select_by) {
    case SelectBy::Estimate:
      return "estimate";
    case SelectBy::Simulate:
      return "simulate";
    case SelectBy::P95:
      return "p95";
  }
  return "";
}

SelectBy chosen_by(const Request& request) {
  if (request.select_by) return *request.select_by;
  const bool simulated = request.simulate && !request.plan.reference && !request.plan_published;
  return simulated ? SelectBy::Simulate : SelectBy::Estimate;
}

const Calibration* calibration_of(const Request& request, const std::string& device_kind) {
  for (const Calibration& calibration : request.calibration)
    if ((calibration.device_kind.empty() || calibration.device_kind == device_kind) &&
        (!calibration.precision || *calibration.precision == request.training.precision))
      return &calibration;
  return nullptr;
}

std::int64_t pipeline_batch(const Request& request) {
  return *request.training.global_batch / request.replicas.count;
}

std::string given_key(const PlanSettings& plan) {
  return plan.file ? "plan.file" : "plan.schedule";
}

std::string given_file_name(const Request& request) {
  const PlanSettings& plan = request.plan;
  return file_name(request, given_key(plan), plan.file ? *plan.file : *plan.schedule);
}

std::string file_name(const Request& request, const std::string& key,
                      const std::filesystem::path& file) {
  const auto named = request.file_names.find(key);
  return named == request.file_names.end() ? file.filename().string() : named->second;
}

}  // namespace pfeife
