#include "experiments/plan_case.h"

#include <chrono>

#include "experiments/baselines.h"
#include "experiments/given_plans.h"
#include "experiments/searched_plans.h"
#include "planner/schedules/families.h"

namespace pfeife {

std::vector<std::string> family_list(const PlanSettings& plan) {
  const bool all = plan.families.front() == "all";
  if (!all && plan.families.front() != "certified") return plan.families;
  std::vector<std::string> names;
  for (const Family& family : families())
    if (all || family.certified) names.push_back(family.name);
  return names;
}

void check_case(const CaseConfig& config, const Layers& layers, const Cluster& cluster) {
  for (const DeviceId device : config.plan.devices)
    if (device.index() >= cluster.devices())
      throw ConfigError(config.plan.devices_where, "plan.devices: device " + to_string(device) +
                                                       " is not in the cluster, which has " +
                                                       std::to_string(cluster.devices()) +
                                                       " (0 to " +
                                                       std::to_string(cluster.devices() - 1) + ")");
  for (const DeviceId device : devices_of(config))
    if (config.plan.reserve && memory_limit(config, cluster, device) <= Bytes{0})
      throw ConfigError(config.plan.reserve_where, "plan.reserve: it leaves nothing of the " +
                                                       to_string(cluster.kind(device).memory) +
                                                       " of device " + to_string(device) +
                                                       "; reserve less");
  switch (config.plan.source) {
    case PlanSettings::Source::Search:
      check_searched(config, layers);
      break;
    case PlanSettings::Source::PlanFile:
      from_plan(config, layers, cluster);
      break;
    case PlanSettings::Source::ScheduleFile:
      from_schedule(config, layers, cluster);
      break;
  }
}

CasePlans plan_case(const CaseConfig& config, const Layers& layers, const Cluster& cluster,
                    const LayersOf& layers_of, std::size_t keep, std::size_t threads) {
  CasePlans plans;
  plans.settled = std::make_shared<const CaseConfig>(config);
  plans.layers = &layers;
  const auto started = std::chrono::steady_clock::now();
  switch (config.plan.source) {
    case PlanSettings::Source::Search:
      search_plans(config, layers, cluster, layers_of,
                   {.keep = keep,
                    .iterations = config.plan.iterations,
                    .threads = threads,
                    .certificate = true},
                   plans);
      break;
    case PlanSettings::Source::PlanFile:
      plans.planned.push_back(from_plan(config, layers, cluster));
      break;
    case PlanSettings::Source::ScheduleFile:
      plans.planned.push_back(from_schedule(config, layers, cluster));
      break;
  }
  plans.search_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  for (const std::string& name : config.baselines)
    plans.baselines.push_back(baseline(name, *plans.settled, *plans.layers, cluster));
  return plans;
}

}  // namespace pfeife
