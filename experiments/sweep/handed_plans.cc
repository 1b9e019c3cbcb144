#include "experiments/sweep/handed_plans.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "experiments/plans/case_limits.h"
#include "planner/io/files/digest.h"
#include "planner/io/files/fields.h"
#include "planner/search/problem.h"

namespace pfeife {
namespace {

bool is_memory(const std::string& cluster_key) {
  return cluster_key.starts_with("device_kinds.") &&
         (cluster_key.ends_with(".memory") || cluster_key.ends_with(".reserve"));
}

/// The case without what may differ.
CaseConfig bare(const CaseConfig& config) {
  CaseConfig rest = config;
  rest.name.clear();
  rest.plan.reserve.reset();
  rest.plan.iterations = 0;
  std::erase_if(rest.cluster_set, [](const auto& set) { return is_memory(set.first); });
  return rest;
}
bool differ_in_allowance_only(const CaseConfig& a, const CaseConfig& b) {
  return static_cast<const Request&>(a) == static_cast<const Request&>(b) &&
         std::ranges::equal(a.cluster_set, b.cluster_set, [](const auto& left, const auto& right) {
           return left.first == right.first && one_line(left.second) == one_line(right.second);
         });
}

/// Something that may differ does.
bool allowances_vary(const Experiment& experiment) {
  return std::ranges::any_of(experiment.cases, [](const CaseConfig& config) {
    return std::ranges::any_of(config.named, [](const SweptKey& swept) {
      return swept.key == "plan.reserve" || swept.key == "plan.iterations" ||
             (swept.key.starts_with("cluster.") &&
              is_memory(swept.key.substr(std::string_view("cluster.").size())));
    });
  });
}

struct Allowance {
  std::vector<Bytes> memory;  ///< [rank]
  std::size_t effort = 0;

  bool within(const Allowance& other) const {
    return effort <= other.effort &&
           std::ranges::equal(memory, other.memory, std::ranges::less_equal{});
  }
};

bool is_searched(const CaseConfig& config) {
  return config.plan.searched() && !config.plan.reference && !config.plan_published &&
         !config.mesh && !config.cluster_measured && !config.profile_measured;
}

/// Cases of one kind, each with what it allows, the tightest first.
void hand_within(std::span<const std::size_t> group, Experiment& experiment, Inputs& inputs) {
  std::vector<Allowance> allowances;
  for (const std::size_t i : group) {
    const CaseConfig& config = experiment.cases[i];
    allowances.push_back({memory_limits(config, inputs.cluster(config)),
                          SearchOptions{.iterations = config.plan.iterations}.effort()});
  }
  std::vector<std::size_t> order(group.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) {
    const std::vector<Bytes>& memory = allowances[k].memory;
    return std::pair(std::accumulate(memory.begin(), memory.end(), Bytes{0}), allowances[k].effort);
  });
  for (std::size_t k = 0; k < order.size(); ++k) {
    CaseConfig& config = experiment.cases[group[order[k]]];
    std::string digests;
    for (std::size_t before = 0; before < k; ++before) {
      if (!allowances[order[before]].within(allowances[order[k]])) continue;
      const CaseConfig& other = experiment.cases[group[order[before]]];
      config.handed.from.push_back(other.name);
      digests += inputs.digest(other) + "\n";
    }
    if (!digests.empty()) config.handed.digest = sha256(digests);
  }
}

}  // namespace

void hand_plans(Experiment& experiment, Inputs& inputs) {
  const bool vary = allowances_vary(experiment);
  std::vector<std::pair<std::optional<CaseConfig>, std::vector<std::size_t>>> groups;
  for (std::size_t i = 0; i < experiment.cases.size(); ++i) {
    std::optional<CaseConfig> rest;
    if (vary && is_searched(experiment.cases[i])) rest = bare(experiment.cases[i]);
    auto group = std::ranges::find_if(groups, [&](const auto& known) {
      return rest && known.first && differ_in_allowance_only(*known.first, *rest);
    });
    if (group == groups.end()) group = groups.insert(group, {std::move(rest), {}});
    group->second.push_back(i);
    experiment.cases[i].handed.group = static_cast<std::size_t>(group - groups.begin());
  }
  try {
    for (const auto& [rest, group] : groups)
      if (group.size() > 1) hand_within(group, experiment, inputs);
  } catch (const ConfigError&) {  // found again, with its place, where the case is computed
  }
}

}  // namespace pfeife
