#include "planner/search/choices/offloading.h"

#include <algorithm>
#include <limits>

#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/joint_choice.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

/// What a stage may do with what it saves.
struct StageUse {
  bool recomputed = false;
  double offload = 0;
};
constexpr StageUse kUses[] = {{false, 0}, {false, 0.5}, {false, 1}, {true, 0}, {true, 1}};

/// Uses that the problem allows and the stage's device can do.
std::vector<StageUse> uses_of(const Problem& problem, const Placement& placement, StageId stage) {
  const bool linked = problem.cluster.kind(placement.device(stage)).host_link.has_value();
  std::vector<StageUse> uses;
  for (const StageUse& use : kUses)
    if ((linked || use.offload == 0) && (!use.recomputed || problem.recompute != Recompute::None))
      uses.push_back(use);
  return uses;
}

/// What may be allocated so that what is reserved for it fits.
std::vector<Bytes> allocated_limit(const Problem& problem) {
  std::vector<Bytes> limit = problem.memory_limit;
  if (!problem.allocator) return limit;
  for (Bytes& bytes : limit)
    bytes = Bytes{static_cast<std::int64_t>(static_cast<double>(bytes.value) /
                                            reserved_factor(*problem.allocator))};
  return limit;
}

std::optional<Priced> offloading(const Problem& problem, Choice choice) {
  const Placement& placement = choice.placement;
  const StageCosts collected =
      collected_stage_costs(problem.layers, choice.partition, placement, problem.cluster);
  std::vector<std::vector<StageUse>> uses;
  std::vector<std::size_t> counts;
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    uses.push_back(uses_of(problem, placement, StageId{s}));
    counts.push_back(uses.back().size());
  }
  const auto recomputed = [&](const Alternatives& chosen) {
    Recomputed of{.except_last = problem.recompute_except_last};
    for (std::size_t s = 0; s < chosen.size(); ++s) {
      of.stages.push_back(uses[s][chosen[s]].recomputed);
      of.offload.push_back(uses[s][chosen[s]].offload);
    }
    if (!of.any()) of.except_last = false;
    return of;
  };
  const std::optional<Nanoseconds> norm =
      norm_time(problem.layers, problem.norm, choice.partition, placement, problem.cluster);
  const Schedule rows = compute_only(choice);
  const auto found =
      fastest_fitting({.compute_only = rows,
                       .placement = placement,
                       .counts = counts,
                       .costs_of =
                           [&](const Alternatives& chosen) {
                             StageCosts costs = with_recomputation(collected, recomputed(chosen),
                                                                   placement, problem.cluster);
                             costs.norm = norm;
                             return costs;
                           },
                       .memory_limit = allocated_limit(problem),
                       .missing_on_hosts =
                           [&](const Schedule& lowered, const StageCosts& costs) {
                             return missing_on_hosts(lowered, costs, placement, problem.cluster);
                           }});
  if (!found) return std::nullopt;
  choice.recomputed = recomputed(found->alternatives);
  if (!choice.recomputed.offloads()) return std::nullopt;  // the search has found it
  return fitting(problem, std::move(choice));
}

}  // namespace

Bytes missing_on_hosts(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                       const Cluster& cluster) {
  Bytes missing{0};
  if (!cluster.host_memory) return missing;
  const std::vector<Bytes> away = host_peak_memory(lowered, costs, placement);
  const std::size_t size = cluster.devices_per_node > 0
                               ? cluster.devices_per_node
                               : std::max<std::size_t>(1, cluster.devices());
  std::vector<Bytes> of_node(cluster.devices() / size + 1, Bytes{0});
  for (std::size_t r = 0; r < away.size(); ++r)
    of_node[placement.device(RankId{r}).index() / size] += away[r];
  for (const Bytes bytes : of_node) missing += std::max(Bytes{0}, bytes - *cluster.host_memory);
  return missing;
}

std::vector<Priced> offloading_plans(const Problem& problem, const SearchOptions& options,
                                     const SearchFunction& search) {
  std::vector<Priced> found;
  const bool linked = std::ranges::any_of(problem.device_of_rank, [&](DeviceId device) {
    return problem.cluster.kind(device).host_link.has_value();
  });
  if (!linked)
    throw ConfigError({},
                      "plan.offload is auto, but no device of the cluster " + problem.cluster.name +
                          " has a way to its host; give its kind a host_link in the cluster "
                          "file, as host_link: {bandwidth: 25 GB/s}, or leave plan.offload out");
  Problem roomy = with_layers(problem, problem.layers);
  roomy.allocator.reset();
  roomy.recompute = Recompute::None, roomy.recompute_except_last = false;
  roomy.memory_limit.assign(problem.memory_limit.size(),
                            Bytes{std::numeric_limits<std::int64_t>::max() / 4});
  SearchOptions quiet = options;
  quiet.progress = {}, quiet.after_step = {}, quiet.times = {}, quiet.certificate = false;
  for (const Priced& plan : search(roomy, quiet).plans) {
    if (plan.spec.slices > 1) continue;
    auto priced = offloading(problem, plan);
    if (priced) found.push_back(*std::move(priced));
  }
  std::ranges::stable_sort(found, {}, &Priced::estimate);
  return found;
}

void add_offloading_plans(std::vector<Priced> plans, Answer& answer) {
  if (plans.empty()) return;
  for (Priced& plan : plans) {
    answer.plans.push_back(plan);
    answer.all.push_back(std::move(plan));
  }
  std::ranges::stable_sort(answer.plans, {}, &Priced::estimate);
  std::ranges::stable_sort(answer.all, {}, &Priced::estimate);
  answer.infeasible.reset(), answer.bound.reset(), answer.certificate.reset();
  answer.covered.clear();
}

}  // namespace pfeife
