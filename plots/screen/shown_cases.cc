#include <algorithm>
#include <map>
#include <numeric>

#include "planner/ir/result/result_engine.h"
#include "plots/screen/table.h"

namespace pfeife {
namespace {

constexpr std::size_t kMostInFull = 8;  ///< cases with all their plans
constexpr std::size_t kMostLines = 36;  ///< lines, one a case

/// The first n keys of a case's name with their values, or all.
std::vector<SweptKey> first_keys(const CaseRecord& record, std::size_t n) {
  const std::size_t count = std::min(n, record.named.size());
  return {record.named.begin(), record.named.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// "devices, microbatches": the first n keys.
std::string names_of_keys(const CaseRecord& record, std::size_t n) {
  std::string keys;
  for (const SweptKey& named : first_keys(record, n))
    keys += (keys.empty() ? "" : ", ") + named.key;
  return keys;
}

/// The number of keys of the name that has most.
std::size_t number_of_keys(const std::vector<CaseRecord>& cases) {
  std::size_t most = 0;
  for (const CaseRecord& record : cases) most = std::max(most, record.named.size());
  return most;
}

/// [case] Samples/s of its chosen plan by an engine that all cases have; -1 if it does not fit.
std::vector<double> worths(const std::vector<CaseRecord>& cases) {
  const TraceSource engine = compared_engine(cases);
  std::vector<double> found;
  for (const CaseRecord& record : cases) {
    const bool fits = !record.plans.empty() && record.plans.front().row.feasible;
    found.push_back(fits ? samples_per_second(record.plans.front().row, engine).value_or(0) : -1);
  }
  return found;
}

/// [values of the first keys] The best case of them; of equals the first.
using BestOfGroups = std::map<std::vector<SweptKey>, std::size_t>;
BestOfGroups best_of_groups(const std::vector<CaseRecord>& cases, const std::vector<double>& worth,
                            std::size_t keys) {
  BestOfGroups best;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [at, added] = best.try_emplace(first_keys(cases[i], keys), i);
    if (!added && worth[i] > worth[at->second]) at->second = i;
  }
  return best;
}

/// Numbers of the cases that are shown, and by what rule.
struct Selection {
  std::vector<std::size_t> numbers;
  std::string rule;
};

Selection choose(const std::vector<CaseRecord>& cases) {
  Selection choice;
  if (cases.size() <= kMostLines) {
    choice.numbers.resize(cases.size());
    std::iota(choice.numbers.begin(), choice.numbers.end(), std::size_t{0});
    return choice;
  }
  const std::vector<double> worth = worths(cases);
  std::size_t used = 1;
  BestOfGroups best = best_of_groups(cases, worth, used);
  for (std::size_t keys = 2; keys <= number_of_keys(cases); ++keys) {
    BestOfGroups finer = best_of_groups(cases, worth, keys);
    if (finer.size() > kMostLines || finer.size() == cases.size()) break;
    best = std::move(finer), used = keys;
  }
  for (const auto& [group, number] : best) choice.numbers.push_back(number);
  std::ranges::sort(choice.numbers);
  choice.rule =
      "of each " + names_of_keys(cases.front(), used) + " the case with the most samples/s";
  if (choice.numbers.size() > kMostLines) {
    std::ranges::stable_sort(choice.numbers, std::greater{},
                             [&](std::size_t i) { return worth[i]; });
    choice.numbers.resize(kMostLines);
    std::ranges::sort(choice.numbers);
    choice.rule = "those with the most samples/s";
  }
  return choice;
}

}  // namespace

ShownCases cases_to_show(const std::vector<CaseRecord>& cases) {
  if (cases.size() <= kMostInFull) return {cases, ""};
  const Selection choice = choose(cases);
  ShownCases shown;
  std::size_t left_out = 0;  // plans
  for (const std::size_t i : choice.numbers) {
    shown.cases.push_back(cases[i]);
    std::vector<PlanRecord>& plans = shown.cases.back().plans;
    left_out += plans.size() > 1 ? plans.size() - 1 : 0;
  }
  const std::string all = std::to_string(cases.size());
  if (!choice.rule.empty())
    shown.summary = std::to_string(choice.numbers.size()) + " of " + all + " cases: " + choice.rule;
  if (left_out > 0)
    shown.summary += (shown.summary.empty() ? all + " cases" : "") +
                     std::string("; of each the chosen plan, without its baselines");
  return shown;
}

}  // namespace pfeife
