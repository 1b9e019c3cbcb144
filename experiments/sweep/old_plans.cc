#include "experiments/sweep/old_plans.h"

#include <algorithm>
#include <set>

#include "experiments/sweep/output_digests.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/result/case_files.h"
#include "planner/ir/result/result_engine.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

constexpr const char* kEveryPlan[] = {"plan.yaml",         "schedule.csv", "stages.csv",
                                      "split_points.json", "timeline.svg", "trace.json"};
constexpr const char* kSomePlans[] = {"schedule_torch.csv", "run_in_torch.py", "measurement.csv",
                                      "measurement.log", "comparison.txt"};

/// The folders that plans of an earlier run may have: of the families, and those that the list of
/// its files names.
std::set<std::string> plan_names(const std::filesystem::path& folder) {
  std::set<std::string> names{"planned", kLessMemory};
  for (const Mode mode : {Mode::Train, Mode::Forward})
    for (const Family& family : families(mode)) names.insert(family.name);
  for (const Family& family : shared_head_families()) names.insert(family.name);
  for (const std::string& file : digested_files(folder)) {
    const std::filesystem::path plan = std::filesystem::path(file).parent_path();
    if (!plan.empty() && plan == plan.filename() && plan != "..") names.insert(plan.string());
  }
  return names;
}

}  // namespace

std::vector<const char*> plan_files() {
  std::vector<const char*> files(std::begin(kEveryPlan), std::end(kEveryPlan));
  files.insert(files.end(), {"schedule_torch.csv", "run_in_torch.py", "measurement.csv"});
  return files;
}

void remove_old_plans(const std::filesystem::path& folder, const std::vector<std::string>& kept,
                      const std::filesystem::path& input) {
  const std::set<std::string> names = plan_names(folder);
  for (const std::string_view file : kCaseFiles)
    if (file != case_file::kCluster) remove_file(folder / file);
  for (const std::string& name : names) {
    const std::filesystem::path plan = folder / name;
    std::error_code error;
    if (!std::filesystem::is_directory(plan, error)) continue;
    if (!input.empty() && std::filesystem::equivalent(input.parent_path(), plan, error)) continue;
    for (const char* file : kSomePlans) remove_file(plan / file);
    if (std::ranges::find(kept, name) != kept.end()) continue;
    for (const char* file : kEveryPlan) remove_file(plan / file);
    remove_file(plan / "certificate.txt");
    std::filesystem::remove(plan, error);  // stays if there is anything of the user's in it
  }
}

}  // namespace pfeife
