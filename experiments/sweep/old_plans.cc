#include "experiments/sweep/old_plans.h"

#include <algorithm>
#include <set>

#include "planner/io/files/atomic_file.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/text_file.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/result/case_files.h"
#include "planner/ir/result/result_engine.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::string_view kBetween = "  ";

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

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

void write_digests(const std::filesystem::path& folder, const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files)
    if (is_file(folder / file))
      text += sha256_file(folder / file) + std::string(kBetween) + file + "\n";
  write_file(folder / case_file::kDigests, text);
}

std::vector<std::string> digested_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  if (!is_file(folder / case_file::kDigests)) return files;
  try {
    const std::string text = read_file(folder / case_file::kDigests);
    for (const TextLine& line : lines_of(text))
      if (line.text.size() > kDigits + kBetween.size())
        files.emplace_back(line.text.substr(kDigits + kBetween.size()));
  } catch (const ConfigError&) {  // cannot be read
    files.clear();
  }
  return files;
}

bool is_undamaged(const std::filesystem::path& folder, const std::string& last) {
  if (!is_file(folder / case_file::kDigests)) return false;
  try {
    const std::string text = read_file(folder / case_file::kDigests);
    for (const TextLine& line : lines_of(text)) {
      if (line.text.size() <= kDigits + kBetween.size()) return false;
      const std::filesystem::path file = folder / line.text.substr(kDigits + kBetween.size());
      if (!is_file(file) || sha256_file(file) != line.text.substr(0, kDigits)) return false;
    }
    return text.ends_with(std::string(kBetween) + last + "\n");
  } catch (const ConfigError&) {
    return false;  // cannot be read
  }
}

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
