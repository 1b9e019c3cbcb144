#include "experiments/show/chosen_cases.h"

#include <algorithm>
#include <map>
#include <string>

namespace pfeife {
namespace {

constexpr std::size_t kMostShown = 24;  ///< cases, each a handful of lines

/// "devices=4,microbatches=8,..." up to its n-th comma.
std::string first_keys(const std::string& name, std::size_t n) {
  std::size_t end = 0;
  for (; n > 0 && end != std::string::npos; --n) end = name.find(',', end == 0 ? 0 : end + 1);
  return name.substr(0, end);
}

/// Of the name that has most.
std::size_t number_of_keys(const std::vector<CaseRecord>& cases) {
  std::ptrdiff_t commas = 0;
  for (const CaseRecord& record : cases)
    commas = std::max(commas, std::ranges::count(record.name, ','));
  return static_cast<std::size_t>(commas) + 1;
}

double worth(const CaseRecord& record) {
  if (record.plans.empty() || !record.plans.front().row.feasible) return -1;
  return record.plans.front().row.samples_per_s.value_or(0);
}

/// [group] number of its best case; of equals the first.
std::map<std::string, std::size_t> best_of_groups(const std::vector<CaseRecord>& cases,
                                                  std::size_t keys) {
  std::map<std::string, std::size_t> best;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [at, added] = best.try_emplace(first_keys(cases[i].name, keys), i);
    if (!added && worth(cases[i]) > worth(cases[at->second])) at->second = i;
  }
  return best;
}

}  // namespace

std::vector<CaseRecord> cases_to_show(const std::vector<CaseRecord>& cases) {
  if (cases.size() <= kMostShown) return cases;
  std::map<std::string, std::size_t> best = best_of_groups(cases, 1);
  for (std::size_t keys = 2; keys <= number_of_keys(cases); ++keys) {
    std::map<std::string, std::size_t> finer = best_of_groups(cases, keys);
    if (finer.size() > kMostShown || finer.size() == cases.size()) break;
    best = std::move(finer);
  }
  std::vector<std::size_t> chosen;
  for (const auto& [group, number] : best) chosen.push_back(number);
  std::ranges::sort(chosen);
  if (chosen.size() > kMostShown) {
    std::ranges::stable_sort(chosen, std::greater{},
                             [&](std::size_t i) { return worth(cases[i]); });
    chosen.resize(kMostShown);
    std::ranges::sort(chosen);
  }
  std::vector<CaseRecord> shown;
  for (const std::size_t i : chosen) shown.push_back(cases[i]);
  return shown;
}

}  // namespace pfeife
