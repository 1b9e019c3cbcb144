#include "experiments/plans/what_would_help.h"

#include <algorithm>

#include "experiments/plans/case_problem.h"
#include "experiments/plans/plan_case.h"
#include "planner/schedules/families.h"
#include "planner/search/choices/advice.h"

namespace pfeife {
namespace {

std::string lacking_bytes(const Infeasible& infeasible) {
  return "rank " + to_string(infeasible.rank) + " needs " + to_string(infeasible.needed) +
         " and has " + to_string(infeasible.available) + ", so it lacks " +
         to_string(infeasible.lacking());
}

std::string offloading_shortage(const std::optional<HostLack>& lack) {
  if (!lack) return ". With plan.offload: auto, devices lack memory, too";
  return ". With plan.offload: auto, " + lack->plan + " fits the devices, but " +
         host_text(lack->shortage);
}

/// The devices of the case's ranks, then the others; those that the config names are all there are.
std::vector<DeviceId> all_devices(const Request& config, const Cluster& cluster) {
  std::vector<DeviceId> devices = config.plan.devices;
  for (std::size_t d = devices.size(); config.plan.devices.empty() && d < cluster.devices(); ++d)
    devices.emplace_back(static_cast<std::int64_t>(d));
  return devices;
}

TriedChange tried(const Remedy& remedy) {
  TriedChange change;
  change.change = remedy.change;
  change.devices = remedy.devices, change.microbatches = remedy.microbatches;
  change.microbatch_size = remedy.microbatch_size;
  if (remedy.plan) {
    change.schedule = name_of(*remedy.plan);
    change.estimate = remedy.plan->estimate;
    change.peak_memory = largest_peak(*remedy.plan);
  } else {
    change.reason = remedy.lack ? lacking_bytes(*remedy.lack) : "the model has too few layers";
  }
  return change;
}

}  // namespace

std::string shortage(const Answer& answer, std::size_t schedules, bool offload) {
  const Infeasible& infeasible = answer.infeasible.value();
  const std::string listed =
      schedules == 1 ? "the schedule" : "any of the " + std::to_string(schedules) + " schedules";
  const std::string kept = offload ? " without offloading" : "";
  return "no plan fits: " + lacking_bytes(infeasible) + " in the best case found" + kept + " (" +
         schedule_name(infeasible.spec) + "); " +
         (infeasible.proven
              ? "proven: no cuts of " + listed + " fit" + kept
              : "not proven: the search ended before all cuts of " + listed + " were ruled out") +
         (offload ? offloading_shortage(answer.host_lack) : "");
}

std::vector<TriedChange> what_would_help(const Request& config, const Problem& problem,
                                         const LayersOf& layers_of, std::size_t threads) {
  // Remedies know whole microbatches only, which are alike.
  if (!config.plan.slices.empty() || !problem.layers->microbatches.empty()) return {};
  const Cluster& cluster = problem.cluster;
  Surroundings around;
  around.schedules = [&](std::size_t ranks, std::size_t microbatches, bool all) {
    std::vector<std::size_t> stages_per_rank = config.plan.stages_per_rank;
    if (all) stages_per_rank = {1, 2, 3};
    return search_set(ranks, microbatches, stages_per_rank,
                      family_list(all ? PlanSettings{} : config.plan, config.training.mode));
  };
  around.devices = all_devices(config, cluster);
  for (const DeviceId device : around.devices)
    around.memory_limit.push_back(searched_limit(config, problem, device));
  around.layers = [&](std::int64_t size) {
    Request other = config;
    other.training.microbatch_size = size;
    return layers_of(other);
  };
  std::vector<TriedChange> changes;
  for (const Remedy& remedy : remedies(problem, around, {.threads = threads}))
    changes.push_back(tried(remedy));
  // What helps comes first.
  std::stable_partition(changes.begin(), changes.end(),
                        [](const TriedChange& c) { return c.estimate.has_value(); });
  return changes;
}

}  // namespace pfeife
