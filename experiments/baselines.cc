#include "experiments/baselines.h"

#include "planner/schedules/families.h"
#include "planner/search/cuts/min_max.h"
#include "planner/search/search.h"

namespace pfeife {

Candidate baseline(const std::string& name, const CaseConfig& config, const Layers& layers,
                   const Cluster& cluster) {
  // One stage a device where the family allows it, otherwise as few as it does.
  ScheduleSpec spec{
      .family = name, .ranks = config.devices, .microbatches = config.microbatches, .loops = 1};
  auto refused = refusal(spec);
  if (refused && refused->loops) {
    spec.loops = *refused->loops;
    refused = refusal(spec);
  }
  const auto impossible = [&](const std::string& reason) {
    return Candidate{.plan = name, .reason = "not possible: " + reason, .spec = spec};
  };
  if (refused) return impossible(to_string(*refused, spec));
  const std::optional<Partition> cuts =
      equal_time_cuts(layers, placed(placement_for(spec), config), cluster);
  if (!cuts)
    return impossible("the model cannot be cut into " + std::to_string(spec.stages()) + " stages");
  if (!family(name).built_for_costs)
    return candidate_of(name, spec, *cuts, config, layers, cluster);
  const Problem built{layers, cluster, {spec}, devices_of(config), memory_limits(config, cluster),
                      *cuts};
  const SearchOutcome outcome = search(built, {.keep = 1});
  if (outcome.plans.empty()) return impossible("no order fits into the memory on equal-time cuts");
  return candidate_of(name, spec, *cuts, config, layers, cluster, {}, outcome.plans.front().order);
}

}  // namespace pfeife
