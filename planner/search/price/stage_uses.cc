#include "planner/search/price/stage_uses.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/cost/allocator/played_ranks.h"
#include "planner/cost/estimate/joint_choice.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/blocks.h"
#include "planner/cost/stages/microbatch_stage_costs.h"
#include "planner/cost/stages/recomputed_layers.h"
#include "planner/cost/stages/sliced_stage_costs.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/schedules/families.h"

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
  std::vector<std::vector<LayerRange>> first(partition.stages());
  for (const LayerRange& block : cut_blocks(blocks, partition)) {
    const auto cut = std::ranges::lower_bound(partition.cuts, block.first.value);
    first[static_cast<std::size_t>(cut - partition.cuts.begin())].push_back(block);
  }
  for (std::vector<LayerRange>& stage : first)
    stage.resize(static_cast<std::size_t>(std::ceil(share * static_cast<double>(stage.size()))));
  return first;
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
      for (const auto& stage : blocks) all.insert(all.end(), stage.begin(), stage.end());
      ways.push_back({.costs = collected(recomputed_layers(problem.layers, choice.partition, all)),
                      .blocks = std::move(blocks)});
    }
  if (problem.recompute == Recompute::Choose ||
      (problem.recompute == Recompute::Blocks && in_blocks == problem.layers->size()))
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
                              std::size_t ways, const HostUse& host) {
  const bool linked =
      host.offload && problem.cluster->kind(placement.device(stage)).host_link.has_value();
  std::vector<StageUse> uses;
  for (std::size_t again = 0; again < ways; ++again)
    for (const double share : kShares)
      if (linked || share == 0) uses.push_back({again, share});
  return uses;
}

/// The ways that each stage goes, put together.
StageCosts put_together(const std::vector<Again>& ways, const std::vector<StageUse>& uses) {
  const auto costs_of = [&](StageId stage) -> const StageCosts& {
    return ways[uses[stage.index()].again].costs;
  };
  StageCosts costs = ways.front().costs;
  for (std::size_t s = 0; s < uses.size(); ++s) costs.stages[s] = costs_of(StageId{s}).stages[s];
  for (std::size_t v = 0; v < costs.values.size(); ++v) {
    StageValue& value = costs.values[v];
    value.saved_by_sender = costs_of(value.from).values[v].saved_by_sender;
    for (std::size_t i = 0; i < value.to.size(); ++i)
      value.saved_by_receiver[i] = costs_of(value.to[i]).values[v].saved_by_receiver[i];
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

/// What hosts lack together.
Bytes missing_on_hosts(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                       const Cluster& cluster) {
  Bytes missing{0};
  if (!cluster.host_memory) return missing;
  for (const Bytes bytes : memory_of_hosts(lowered, costs, placement, cluster))
    missing += std::max(Bytes{0}, bytes - *cluster.host_memory);
  return missing;
}

/// The uses of a choice's stages, with what they cost.
class StageUses {
 public:
  StageUses(const Problem& problem, const Choice& choice, const HostUse& host)
      : problem_(problem),
        choice_(choice),
        host_(host),
        ways_(ways_to_recompute(problem, choice)),
        norm_(norm_time(problem.layers, problem.norm, choice.partition, choice.placement,
                        problem.cluster)),
        rows_(compute_only(choice)) {
    for (std::size_t s = 0; s < choice.placement.stages(); ++s)
      uses_.push_back(uses_of(problem, choice.placement, StageId{s}, ways_.size(), host));
  }

  std::optional<Choice> fastest() const {
    std::vector<std::size_t> counts;
    for (const std::vector<StageUse>& uses : uses_) counts.push_back(uses.size());
    JointProblem joint{
        .compute_only = rows_,
        .placement = choice_.placement,
        .counts = counts,
        .costs_of = [&](const Alternatives& chosen) { return costs_of(chosen); },
        .memory_limit = allocated_limit(problem_),
        .receives = shares_head(choice_.spec) ? Receives::AsReady : problem_.receives};
    if (host_.offload && host_.limited)
      joint.missing_on_hosts = [&](const Schedule& lowered, const StageCosts& costs) {
        return missing_on_hosts(lowered, costs, choice_.placement, problem_.cluster);
      };
    const auto found = fastest_fitting(joint);
    if (!found) return std::nullopt;
    Choice choice = choice_;
    choice.activations = activations(found->alternatives);
    return choice;
  }

 private:
  std::vector<StageUse> uses_in(const Alternatives& chosen) const {
    std::vector<StageUse> uses;
    for (std::size_t s = 0; s < chosen.size(); ++s) uses.push_back(uses_[s][chosen[s]]);
    return uses;
  }
  Activations activations(const Alternatives& chosen) const {
    Activations found{.except_last = problem_.recompute_except_last};
    const std::vector<StageUse> all = uses_in(chosen);
    for (std::size_t s = 0; s < all.size(); ++s) {
      const Again& way = ways_[all[s].again];
      found.stages.push_back(way.stage);
      found.offload.push_back(all[s].offload);
      found.blocks.insert(found.blocks.end(), way.blocks[s].begin(), way.blocks[s].end());
    }
    if (!found.recomputes()) found.except_last = false;
    return found;
  }
  StageCosts costs_of(const Alternatives& chosen) const {
    Activations found = activations(chosen);
    found.blocks.clear();  // are in the costs put together
    StageCosts costs = with_recomputation(put_together(ways_, uses_in(chosen)), found,
                                          choice_.placement, problem_.cluster);
    costs.norm = norm_;
    if (const auto& words = problem_.layers->words; words && head_barriers(rows_) > 0)
      add_word_shares(costs, *words, rows_);
    if (choice_.spec.slices == 1)
      return microbatch_stage_costs(std::move(costs), problem_.layers, choice_.partition,
                                    choice_.placement, problem_.cluster);
    return sliced_stage_costs(std::move(costs), choice_.spec.slices, choice_.spec.slice_lengths,
                              problem_.layers, choice_.partition, choice_.placement,
                              problem_.cluster, activations(chosen));
  }

  const Problem& problem_;
  const Choice& choice_;
  const HostUse host_;
  std::vector<Again> ways_;
  std::optional<Nanoseconds> norm_;
  Schedule rows_;
  std::vector<std::vector<StageUse>> uses_;
};

}  // namespace

std::optional<Choice> with_stage_uses(const Problem& problem, const Choice& choice,
                                      const HostUse& host) {
  return StageUses(problem, choice, host).fastest();
}

}  // namespace pfeife
