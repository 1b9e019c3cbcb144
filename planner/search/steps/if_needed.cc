#include "planner/search/steps/if_needed.h"

#include <algorithm>

#include "planner/cost/stages/blocks.h"
#include "planner/search/pool/pool.h"

namespace pfeife {
namespace {

/// A plan that holds twice as much as the best one would not fit: recomputing some stages may then
/// buy more time than it costs. The share decides about effort alone: where it says so, both ways
/// are searched and the faster plan is taken.
bool memory_may_bind(const Priced& plan, const std::vector<Bytes>& memory_limit) {
  constexpr double kHalf = 0.5;
  for (std::size_t r = 0; r < plan.peak_memory.size(); ++r)
    if (static_cast<double>(plan.peak_memory[r].value) >
        kHalf * static_cast<double>(memory_limit[r].value))
      return true;
  return false;
}

}  // namespace

Problem with_settled_recomputation(Problem problem) {
  if (problem.recompute == Recompute::IfNeeded) problem.recompute = Recompute::Choose;
  const bool attention = problem.recompute == Recompute::Attention;
  if (attention) problem.recompute = Recompute::Blocks;
  if (problem.recompute == Recompute::Blocks && problem.blocks.empty())
    problem.blocks = attention ? attention_blocks(problem.layers) : model_blocks(problem.layers);
  if (problem.recompute == Recompute::None) problem.recompute_except_last = false;
  return problem;
}

Answer search_if_needed(const Problem& problem, const SearchOptions& options,
                        const SearchFunction& search) {
  Problem kept = problem, recomputing = problem;
  kept.recompute = Recompute::None, recomputing.recompute = Recompute::Choose;
  constexpr double kKept = 2.0 / 3;  // of the time of both; mostly it is all
  Answer outcome = search(kept, part_of(options, 0, kKept));
  SearchOptions more = part_of(options, kKept, 1);
  if (!outcome.plans.empty()) {
    if (!memory_may_bind(outcome.plans.front(), problem.memory_limit)) return outcome;
    // It knows no price in its bound and so seldom ends by it: half of what was spent so far.
    if (outcome.effort > 0) more.iterations = std::max<std::size_t>(outcome.effort / 2, 1);
  }
  Answer recomputed = search(recomputing, more);
  const bool better =
      outcome.plans.empty() || (!recomputed.plans.empty() &&
                                recomputed.plans.front().estimate < outcome.plans.front().estimate);
  const std::size_t besides = better ? outcome.candidates : recomputed.candidates;
  Pool pool(std::move(better ? recomputed : outcome), problem.memory_limit);
  pool.count(besides);
  if (better) pool.count_before(besides);
  return std::move(pool).take();
}

}  // namespace pfeife
