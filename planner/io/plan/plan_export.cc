#include "planner/io/plan/plan_export.h"

#include "planner/io/plan/plan_writers.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/result/not_executed.h"

namespace pfeife {
namespace {

struct PlanWriter {
  const char* name;
  Exported (*write)(const PlanToExport& planned);
};

std::string refusal(const std::string& name, const std::vector<std::string>& reasons) {
  std::string text = "the plan cannot be exported for " + name + ":";
  for (const std::string& reason : reasons) text += "\n  " + reason;
  return text + "\nplan: {for: " + name +
         "} in the config keeps to its schedules, cuts and recomputation; torch takes every model";
}

constexpr PlanWriter kWriters[] = {
    {"torch", export_for_torch},           {"megatron", export_for_megatron},
    {"torchtitan", export_for_torchtitan}, {"automodel", export_for_automodel},
    {"deepspeed", export_for_deepspeed},   {"chakra", export_for_chakra}};

}  // namespace

std::vector<std::string> export_names() {
  std::vector<std::string> names;
  for (const PlanWriter& writer : kWriters) names.emplace_back(writer.name);
  return names;
}

Exported export_plan(const std::string& name, const PlanToExport& planned) {
  for (const PlanWriter& writer : kWriters) {
    if (writer.name != name) continue;
    const std::string_view where = name == "torch" ? "torch" : "export";
    if (const std::string why = why_not_executed(where, {planned.plan, planned.run.format});
        !why.empty())
      throw ConfigError({}, name + ": " + why);
    Exported exported = writer.write(planned);
    if (!exported.refused.empty()) throw ConfigError({}, refusal(name, exported.refused));
    const std::vector<std::string>& parts = planned.run.architecture.left_out;
    if (planned.of_architecture)
      exported.lost.insert(exported.lost.end(), parts.begin(), parts.end());
    return exported;
  }
  std::string known;
  for (const std::string& framework : export_names())
    known += (known.empty() ? "" : ", ") + framework;
  const std::string nearest = nearest_spelling(name, export_names());
  throw ConfigError({}, "a plan cannot be written for '" + name + "'" +
                            (nearest.empty() ? "" : "; did you mean " + nearest + "?") +
                            "; known: " + known);
}

MeshRun run_of_pipeline(const Plan& plan) {
  MeshRun run;
  run.mesh.size(Axis::Pipeline) = static_cast<std::int64_t>(plan.placement.ranks());
  if (plan.files) {
    run.mesh.size(Axis::Data) = plan.files->replicas.count;
    run.zero = plan.files->replicas.zero;
    run.overlap_reductions = plan.files->replicas.overlap_reductions;
  }
  run.microbatch_size = plan.training.microbatch_size;
  run.global_batch = run.microbatch_size * static_cast<std::int64_t>(plan.spec.microbatches) *
                     run.mesh.size(Axis::Data);
  run.type = plan.training.precision == Precision::Bf16Amp   ? DType::BFloat16
             : plan.training.precision == Precision::Fp16Amp ? DType::Float16
                                                             : DType::Float32;
  run.optimizer = plan.training.optimizer;
  return run;
}

}  // namespace pfeife
