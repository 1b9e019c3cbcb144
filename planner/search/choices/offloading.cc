#include "planner/search/choices/offloading.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/joint_choice.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/blocks.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/basics/error.h"
#include "planner/schedules/families.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

/// What may be computed again of a stage: nothing, all of it at once, or some of its blocks each by
/// itself; the stage's costs with it, nothing offloaded.
struct Again {
  bool stage = false;
  StageCosts costs = {};                        // collected, of all stages
  std::vector<std::vector<LayerRange>> blocks;  // [stage]
};

/// The first blocks of every stage, so large a share of them; at least one.
std::vector<std::vector<LayerRange>> first_blocks(const std::vector<LayerRange>& blocks,
                                                  const Partition& partition, double share) {
  std::vector<std::vector<LayerRange>> of_stage(partition.stages());
  for (const LayerRange& block : cut_blocks(blocks, partition)) {
    const auto cut = std::ranges::lower_bound(partition.cuts, block.first.value);
    of_stage[static_cast<std::size_t>(cut - partition.cuts.begin())].push_back(block);
  }
  for (std::vector<LayerRange>& of : of_stage)
    of.resize(static_cast<std::size_t>(std::ceil(share * static_cast<double>(of.size()))));
  return of_stage;
}

/// What the problem allows, first what takes least time.
std::vector<Again> ways_to_recompute(const Problem& problem, const Choice& choice) {
  const auto collected = [&](const Layers& layers) {
    return collected_stage_costs(layers, choice.partition, choice.placement, problem.cluster);
  };
  const std::vector<std::vector<LayerRange>> none(choice.placement.stages());
  const Again nothing{.costs = collected(problem.layers), .blocks = none};
  const Again stages{.stage = true, .costs = nothing.costs, .blocks = none};
  if (problem.recompute == Recompute::Full) return {stages};
  std::vector<Again> ways{nothing};
  std::size_t in_blocks = 0;  // layers
  for (const LayerRange& block : problem.blocks)
    in_blocks += block.last.index() - block.first.index() + 1;
  if (problem.recompute == Recompute::Blocks && !problem.recompute_except_last)
    for (const double share : {0.25, 0.5, 0.75, 1.0}) {
      auto blocks = first_blocks(problem.blocks, choice.partition, share);
      if (blocks == ways.back().blocks) continue;
      std::vector<LayerRange> all;
      for (const auto& of : blocks) all.insert(all.end(), of.begin(), of.end());
      ways.push_back({.costs = collected(recomputed_layers(problem.layers, choice.partition, all)),
                      .blocks = std::move(blocks)});
    }
  if (problem.recompute == Recompute::Choose ||
      (problem.recompute == Recompute::Blocks && in_blocks == problem.layers.size()))
    ways.push_back(stages);
  return ways;
}

/// What a stage may do with what it saves.
struct StageUse {
  std::size_t again = 0;  // of the ways
  double offload = 0;
};
constexpr double kShares[] = {0, 0.5, 1};

/// Uses that the stage's device can do.
std::vector<StageUse> uses_of(const Problem& problem, const Placement& placement, StageId stage,
                              std::size_t ways) {
  const bool linked = problem.cluster.kind(placement.device(stage)).host_link.has_value();
  std::vector<StageUse> uses;
  for (std::size_t again = 0; again < ways; ++again)
    for (const double share : kShares)
      if (linked || share == 0) uses.push_back({again, share});
  return uses;
}

/// The ways that each stage goes, put together.
StageCosts put_together(const std::vector<Again>& ways, const std::vector<StageUse>& uses) {
  const auto of = [&](StageId stage) -> const StageCosts& {
    return ways[uses[stage.index()].again].costs;
  };
  StageCosts costs = ways.front().costs;
  for (std::size_t s = 0; s < uses.size(); ++s) costs.stages[s] = of(StageId{s}).stages[s];
  for (std::size_t v = 0; v < costs.values.size(); ++v) {
    StageValue& value = costs.values[v];
    value.saved_by_sender = of(value.from).values[v].saved_by_sender;
    for (std::size_t i = 0; i < value.to.size(); ++i)
      value.saved_by_receiver[i] = of(value.to[i]).values[v].saved_by_receiver[i];
  }
  return costs;
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
  const std::vector<Again> ways = ways_to_recompute(problem, choice);
  std::vector<std::vector<StageUse>> uses;
  std::vector<std::size_t> counts;
  for (std::size_t s = 0; s < placement.stages(); ++s) {
    uses.push_back(uses_of(problem, placement, StageId{s}, ways.size()));
    counts.push_back(uses.back().size());
  }
  const auto uses_in = [&](const Alternatives& chosen) {
    std::vector<StageUse> of;
    for (std::size_t s = 0; s < chosen.size(); ++s) of.push_back(uses[s][chosen[s]]);
    return of;
  };
  const auto recomputed = [&](const Alternatives& chosen) {
    Recomputed of{.except_last = problem.recompute_except_last};
    const std::vector<StageUse> all = uses_in(chosen);
    for (std::size_t s = 0; s < all.size(); ++s) {
      const Again& way = ways[all[s].again];
      of.stages.push_back(way.stage);
      of.offload.push_back(all[s].offload);
      of.blocks.insert(of.blocks.end(), way.blocks[s].begin(), way.blocks[s].end());
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
                             Recomputed of = recomputed(chosen);
                             of.blocks.clear();  // are in the costs put together
                             StageCosts costs =
                                 with_recomputation(put_together(ways, uses_in(chosen)), of,
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

Answer offloading_plans(const Problem& problem, const SearchOptions& options,
                        const SearchFunction& search) {
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
  Answer found = search(roomy, quiet);
  if (found.bound)
    found.bound->memory_limit = problem.memory_limit, found.bound->recompute = problem.recompute;
  for (const Priced& plan : std::exchange(found.plans, {})) {
    if (plan.spec.slices > 1) continue;
    auto priced = offloading(problem, plan);
    if (priced) found.plans.push_back(*std::move(priced));
  }
  std::ranges::stable_sort(found.plans, {}, &Priced::estimate);
  return found;
}

void add_offloading_plans(Answer offloading, Answer& answer) {
  if (offloading.plans.empty()) return;
  for (Priced& plan : offloading.plans) {
    answer.plans.push_back(plan);
    answer.all.push_back(std::move(plan));
  }
  std::ranges::stable_sort(answer.plans, {}, &Priced::estimate);
  std::ranges::stable_sort(answer.all, {}, &Priced::estimate);
  answer.infeasible.reset(), answer.certificate.reset();
  answer.bound = std::move(offloading.bound), answer.covered = std::move(offloading.covered);
  answer.uncertified = std::move(offloading.uncertified);
}

}  // namespace pfeife
