// Plans of the listed schedules first, then the steps that go beyond them: each adds plans to the
// same pool.
#include "planner/search/search.h"

#include <algorithm>
#include <limits>

#include "planner/schedules/families.h"
#include "planner/search/joint/joint_search.h"
#include "planner/search/price/hidden_collectives.h"
#include "planner/search/steps/given_cuts.h"
#include "planner/search/steps/if_needed.h"
#include "planner/search/steps/least_segments.h"
#include "planner/search/steps/offloading.h"
#include "planner/search/steps/placements.h"
#include "planner/search/steps/shared_head.h"
#include "planner/search/steps/side_by_side.h"
#include "planner/search/steps/sliced_schedules.h"
#include "planner/search/steps/step.h"
#include "planner/search/steps/unequal_microbatches.h"

namespace pfeife {
namespace {

struct Step {
  std::string_view name;
  bool (*wanted)(const Problem&);
  void (*add)(const Problem&, const SearchOptions&, const SearchFunction&, Pool&);
};

/// Listed schedules that the search over whole microbatches does not know.
constexpr Step kListed[] = {
    {"side by side", [](const Problem& problem) { return hides_collectives(problem); },
     add_side_by_side},
    {"slices", has_slices, add_sliced_plans},
    {"shared output layer", has_shared_head, add_shared_head_plans},
};

/// Plans beside those of the listed schedules on the devices alone.
constexpr Step kBeyond[] = {
    {"offload", [](const Problem& problem) { return problem.offload; }, add_offloading_plans},
    {"placements", [](const Problem& problem) { return problem.search_placement; },
     add_placed_plans},
};

void take_steps(std::span<const Step> steps, const Problem& problem, const SearchOptions& options,
                const SearchFunction& within, Pool& pool) {
  for (const Step& step : steps)
    if (step.wanted(problem))
      take_step(step.name, problem, options, pool,
                [&] { step.add(problem, options, within, pool); });
}

/// All whole microbatches of equal cost: given cuts, or all schedules together.
Answer search_whole(Problem problem, const SearchOptions& options, const SearchFunction& within) {
  std::erase_if(problem.schedules, [&](const ScheduleSpec& spec) {
    return spec.slices > 1 || shares_head(spec) || hides_collectives(problem.layers, spec);
  });
  if (problem.schedules.empty()) return {};
  if (auto nothing_fits = below_least_segments(problem)) return *std::move(nothing_fits);
  if (problem.cuts) return choose_schedule(problem, options, within);
  std::vector<ScheduleSpec> to_build;  // schedules whose order is yet to be built
  std::ranges::copy_if(problem.schedules, std::back_inserter(to_build), is_built);
  std::erase_if(problem.schedules, is_built);
  return JointSearch(problem, to_build, options, within).run();
}

/// Recomputation is settled, and microbatches are equal.
Pool search_listed(const Problem& problem, SearchOptions options, const SearchFunction& within) {
  if (hides_collectives(problem) || has_slices(problem) || has_shared_head(problem))
    options.certificate = false;
  Pool pool(search_whole(problem, options, within), problem.memory_limit);
  pool.set_recompute(problem.recompute);
  take_steps(kListed, problem, options, within, pool);
  return pool;
}

}  // namespace

SearchOptions part_of(SearchOptions options, double begin, double end) {
  if (options.progress)
    options.progress = [whole = options.progress, begin, end](double done) {
      whole(begin + (end - begin) * done);
    };
  return options;
}

Problem without_limits(Problem problem) {
  std::ranges::fill(problem.memory_limit, Bytes{std::numeric_limits<std::int64_t>::max() / 4});
  problem.allocator.reset();
  problem.recompute = Recompute::None, problem.recompute_except_last = false;
  problem.offload = false;
  return problem;
}

static Pool search_on_devices(const Problem& problem, const SearchOptions& options,
                              const SearchFunction& within) {
  if (problem.recompute == Recompute::IfNeeded)
    return {search_if_needed(problem, options, within), problem.memory_limit};
  SearchOptions settled = options;
  if (problem.recompute == Recompute::Blocks || problem.recompute_except_last)
    settled.certificate = false;  // none speaks of blocks, or of microbatches that differ
  if (!has_shared_head(problem))
    if (auto nothing_fits = below_least_segments(problem))
      return {*std::move(nothing_fits), problem.memory_limit};
  if (!problem.layers->microbatches.empty())
    return {search_unequal_microbatches(problem, settled, within), problem.memory_limit};
  return search_listed(problem, settled, within);
}

Answer search(const Problem& given, const SearchOptions& options) {
  const SearchFunction within = [](Problem problem, const SearchOptions& of_part) {
    problem.offload = problem.search_placement = false;
    return search(problem, of_part);
  };
  Problem problem = with_settled_recomputation(given);
  Pool pool =
      search_on_devices(given.recompute == Recompute::IfNeeded ? given : problem, options, within);
  // What is offloaded may be recomputed, too, even if that alone was not needed.
  if (!problem.offload) problem.recompute = pool.answer().recompute;
  if (problem.recompute == Recompute::None) problem.recompute_except_last = false;
  take_steps(kBeyond, problem, options, within, pool);
  return std::move(pool).take();
}

std::vector<std::string_view> search_steps() { return JointSearch::step_names(); }

Plan plan_of(const Priced& planned) {
  Plan plan{planned};
  plan.schedule = compute_only(plan);
  plan.order.reset();
  return plan;
}

}  // namespace pfeife
