#include "planner/search/steps/equal_blocks.h"

#include <algorithm>
#include <utility>

#include "planner/cost/stages/blocks.h"
#include "planner/search/price/price.h"

namespace pfeife {
namespace {

/// [stage] Its blocks in numbered modules.
std::vector<std::vector<LayerRange>> blocks_of_stages(const Problem& problem,
                                                      const Partition& partition) {
  std::vector<std::vector<LayerRange>> blocks(partition.stages());
  for (const LayerRange& block : cut_blocks(problem.blocks, partition)) {
    if (!in_numbered_module(problem.layers->layers[block.first.index()])) continue;
    const auto cut = std::ranges::lower_bound(partition.cuts, block.first.value);
    blocks[static_cast<std::size_t>(cut - partition.cuts.begin())].push_back(block);
  }
  return blocks;
}

std::optional<Priced> with_equal_blocks(const Problem& problem, const Priced& plan) {
  if (!plan.activations.recomputes()) return plan;
  const auto blocks = blocks_of_stages(problem, plan.partition);
  std::size_t most = 0;
  for (const std::vector<LayerRange>& stage : blocks) most = std::max(most, stage.size());
  for (std::size_t n = problem.recompute == Recompute::Attention ? most : 1; n <= most; ++n) {
    Choice choice = plan;
    choice.activations.stages.assign(blocks.size(), false);
    choice.activations.blocks.clear();
    for (const std::vector<LayerRange>& stage : blocks)
      choice.activations.blocks.insert(
          choice.activations.blocks.end(), stage.begin(),
          stage.begin() + static_cast<std::ptrdiff_t>(std::min(n, stage.size())));
    if (auto fits = fitting(problem, std::move(choice))) return fits;
  }
  return std::nullopt;
}

}  // namespace

void make_blocks_equal(const Problem& problem, Pool& pool) {
  if (problem.recompute != Recompute::Blocks && problem.recompute != Recompute::Attention) return;
  std::vector<Priced> before = pool.answer().plans, after;
  before.insert(before.end(), pool.answer().front.begin(), pool.answer().front.end());
  for (const Priced& plan : before)
    if (const auto equal = with_equal_blocks(problem, plan);
        equal && std::ranges::find(after, *equal) == after.end())
      after.push_back(*equal);
  if (after.empty()) return;
  const std::size_t kept = pool.answer().plans.size();
  pool.replace(std::move(after));
  pool.keep(kept);
}

}  // namespace pfeife
