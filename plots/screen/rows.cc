#include <algorithm>
#include <tuple>

#include "planner/ir/result/result_engine.h"
#include "plots/screen/columns.h"

namespace pfeife {
namespace {

/// "training.precision" to "precision"; the most frequent one is a letter, as D and N are.
std::string head_of(const std::string& path) {
  if (path == "training.microbatch_size") return kMicrobatchSize;
  const std::size_t dot = path.rfind('.');
  return path.substr(dot == std::string::npos ? 0 : dot + 1);
}

std::string count_text(std::size_t count) { return count > 0 ? std::to_string(count) : ""; }

/// The last `parts` of a path without the extension.
std::string tail(const std::string& path, std::size_t parts) {
  std::size_t begin = path.size();
  for (; parts > 0 && begin != std::string::npos && begin > 0; --parts)
    begin = path.rfind('/', begin - 1);
  const bool whole = begin == std::string::npos || begin == path.size();
  const std::string name = whole ? path : path.substr(begin + 1);
  const std::size_t dot = name.rfind('.'), slash = name.rfind('/');
  return dot == std::string::npos || (slash != std::string::npos && dot < slash)
             ? name
             : name.substr(0, dot);
}

/// [file] Its name, with as many folders in front as tell it from the others; the whole path where
/// only the extension does.
std::vector<std::string> telling_names(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) {
    const auto parts = static_cast<std::size_t>(std::ranges::count(file, '/')) + 1;
    std::string name = file;
    for (std::size_t k = 1; k <= parts && name == file; ++k)
      if (std::ranges::none_of(files, [&](const std::string& other) {
            return other != file && tail(other, k) == tail(file, k);
          }))
        name = tail(file, k);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

bool Key::varies() const {
  return std::ranges::any_of(values, [&](const auto& v) { return v != values.front(); });
}

std::size_t Key::width() const {
  std::size_t width = head.size();
  for (const std::string& value : values) width = std::max(width, value.size());
  return width;
}

std::vector<Key> keys_of(const std::vector<CaseRecord>& cases) {
  std::vector<Key> keys{{"D", {}}, {"N", {}}, {"model", {}, false}, {"cluster", {}, false}};
  std::vector<std::string> paths(keys.size());
  for (const CaseRecord& record : cases)
    for (const SweptKey& swept : record.swept)
      if (std::ranges::find(paths, swept.key) == paths.end()) {
        paths.push_back(swept.key);
        keys.push_back({head_of(swept.key), {}, swept.key == "training.microbatch_size"});
      }
  std::vector<std::string> models, clusters;
  for (const CaseRecord& record : cases)
    models.push_back(record.model), clusters.push_back(record.cluster);
  keys[2].values = telling_names(models), keys[3].values = telling_names(clusters);
  for (const CaseRecord& record : cases) {
    const ResultRow row = record.plans.empty() ? ResultRow{} : record.plans.front().row;
    keys[0].values.push_back(count_text(row.devices));
    keys[1].values.push_back(count_text(row.microbatches));
    for (std::size_t k = 4; k < keys.size(); ++k) {
      const auto swept = std::ranges::find(record.swept, paths[k], &SweptKey::key);
      keys[k].values.push_back(swept == record.swept.end() ? "" : swept->value);
    }
  }
  std::vector<Key> telling{keys[0], keys[1]};
  for (std::size_t k = 2; k < keys.size(); ++k)
    if (keys[k].varies()) telling.push_back(std::move(keys[k]));
  // Times of different engines are not comparable: their cases are told apart.
  Key engine{"times", {}, false};
  for (const CaseRecord& record : cases)
    engine.values.push_back(to_string(compared_engine(record)));
  if (engine.varies()) telling.push_back(std::move(engine));
  return telling;
}

std::vector<const PlanRecord*> plans_in_order(const CaseRecord& record, bool chosen_only) {
  std::vector<const PlanRecord*> plans;
  for (const PlanRecord& plan : record.plans)
    if (plans.empty() || !chosen_only) plans.push_back(&plan);
  if (plans.empty()) return plans;
  const TraceSource engine = compared_engine(record);
  const auto rank = [&](const PlanRecord* plan) {
    return std::tuple(!is_own(plan->row), !has_time(plan->row), !plan->need.fits(),
                      !time_of(plan->row, engine), time_of(plan->row, engine));
  };
  std::ranges::stable_sort(plans.begin() + 1, plans.end(), {}, rank);
  return plans;
}

std::string plan_name(const PlanRecord& plan) {
  const ResultRow& row = plan.row;
  const bool called = !row.plan.empty() && !is_own(row) && row.plan != row.family;
  if (row.estimate && called)
    return row.plan + (row.stages_per_rank > 1 ? " V=" + std::to_string(row.stages_per_rank) : "");
  std::string name = plan.row.estimate ? schedule_name(plan.row) : plan.row.plan;
  if (name.empty()) name = plan.row.plan;
  for (std::size_t at = 0; (at = name.find(", ", at)) != std::string::npos;) name.erase(at, 1);
  return name;
}

std::string short_plan_name(const PlanRecord& plan) {
  PlanRecord without = plan;
  without.row.knobs.clear();
  return plan_name(without) + (plan.recomputes ? " +rec" : "");
}

}  // namespace pfeife
