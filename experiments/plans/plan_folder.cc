#include "experiments/plans/plan_folder.h"

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/plan_export.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/stage_file.h"

namespace pfeife {
namespace {

/// Puts `to(file)` in the place of each file that there is.
template <class To>
void for_each_file(ModelFiles& model, const To& to) {
  if (!model.file.empty()) model.file = to(model.file);
  if (model.skips) model.skips = to(*model.skips);
  if (model.profile) model.profile = to(*model.profile);
}

std::filesystem::path as_absolute(const std::filesystem::path& file) {
  return file.empty() ? file : std::filesystem::absolute(file);
}

}  // namespace

PlanFiles plan_files(const ModelFiles& model, const Replicas& replicas,
                     const std::filesystem::path& cluster) {
  PlanFiles files{
      .model = model, .cluster = as_absolute(cluster).generic_string(), .replicas = replicas};
  for_each_file(files.model, as_absolute);
  if (model.profile) files.profile_digest = sha256_file(*model.profile);
  return files;
}

PlanFiles seen_from(PlanFiles files, const std::filesystem::path& folder) {
  const auto seen = [&](const std::filesystem::path& file) {
    return std::filesystem::proximate(file, folder);
  };
  for_each_file(files.model, seen);
  if (!files.cluster.empty()) files.cluster = seen(files.cluster).generic_string();
  return files;
}

void write_plan_folder(const std::filesystem::path& folder, const Plan& plan,
                       const StageCosts& costs, const Layers& layers) {
  // What another plan that lay here had, and this one may not have.
  for (const char* file : {"certificate.txt", "schedule_torch.csv", "run_in_torch.py"}) {
    std::error_code ignored;
    std::filesystem::remove(folder / file, ignored);
  }
  write_plan(folder, plan);
  write_file(folder / "stages.csv", stages_text(costs, plan.placement));
  const Trace none;
  const MeshRun run = run_of_pipeline(plan);
  for (const ExportedFile& file : export_plan("torch", {plan, layers, costs, none, run}).files)
    write_file(folder / file.name, file.text);
}

}  // namespace pfeife
