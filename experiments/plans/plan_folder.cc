#include "experiments/plans/plan_folder.h"

#include <algorithm>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/plan_file.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/io/plan/split_points.h"
#include "planner/io/plan/stage_file.h"
#include "planner/io/plan/torch_script.h"

namespace pfeife {
namespace {

/// What torch.distributed.pipelining needs to run the plan, or why it cannot.
void write_for_torch(const std::filesystem::path& folder, const Plan& plan, const Layers& layers) {
  const char* const name = "schedule_torch.csv";
  std::string why_not = torch_refusal(layers, plan), schedule;
  try {
    schedule = write_schedule(plan.schedule, Reader::Torch);
  } catch (const ConfigError& error) {
    if (why_not.empty()) why_not = error.what();
  }
  const auto points = split_points(layers, plan.partition);
  if (why_not.empty()) {
    write_file(folder / name, schedule);
    if (std::ranges::all_of(points, [](const SplitPoint& p) { return p.why_not.empty(); }))
      write_file(folder / "run_in_torch.py", torch_script());
  }
  write_file(folder / "split_points.json",
             split_points_text(layers, plan, why_not.empty() ? name : "", why_not));
}

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
  write_for_torch(folder, plan, layers);
}

}  // namespace pfeife
