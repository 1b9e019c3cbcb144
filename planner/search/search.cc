// Given cuts, or all schedules together: the two kinds of search behind the door. Schedules that
// hide collectives go apart.
#include "planner/search/search.h"

#include <algorithm>

#include "planner/schedules/families.h"
#include "planner/search/joint/given_cuts.h"
#include "planner/search/joint/if_needed.h"
#include "planner/search/joint/joint_search.h"
#include "planner/search/joint/least_segments.h"
#include "planner/search/joint/shared_head.h"
#include "planner/search/joint/side_by_side.h"
#include "planner/search/joint/sliced_schedules.h"
#include "planner/search/joint/unequal_microbatches.h"
#include "planner/search/price/hidden_collectives.h"

namespace pfeife {

static Answer search_cuts(const Problem& problem, const SearchOptions& options) {
  Problem known = problem;  // without the schedules whose order is yet to be built
  std::erase_if(known.schedules, is_built);
  std::vector<ScheduleSpec> to_build;
  std::ranges::copy_if(problem.schedules, std::back_inserter(to_build), is_built);
  return JointSearch(known, to_build, options, search).run();
}

SearchOptions part_of(SearchOptions options, double begin, double end) {
  if (options.progress)
    options.progress = [whole = options.progress, begin, end](double done) {
      whole(begin + (end - begin) * done);
    };
  return options;
}

Answer search(const Problem& given_problem, const SearchOptions& options) {
  if (given_problem.recompute == Recompute::IfNeeded)
    return search_if_needed(given_problem, options, search);
  const Problem problem = with_settled_recomputation(given_problem);
  SearchOptions settled = options;
  if (problem.recompute == Recompute::Blocks || problem.recompute_except_last)
    settled.certificate = false;  // none speaks of blocks, or of microbatches that differ
  if (problem.recompute == Recompute::None && problem.recompute_except_last) {
    Problem plain = problem;
    plain.recompute_except_last = false;
    return search(plain, options);
  }
  if (has_shared_head(problem)) return search_shared_head(problem, settled, search);
  if (auto nothing_fits = below_least_segments(problem)) return *std::move(nothing_fits);
  if (!problem.layers->microbatches.empty())
    return search_unequal_microbatches(problem, settled, search);
  if (has_slices(problem)) return search_with_slices(problem, settled, search);
  if (hides_collectives(problem)) return search_side_by_side(problem, settled, search);
  return problem.cuts ? choose_schedule(problem, settled, search) : search_cuts(problem, settled);
}

std::vector<std::string_view> search_steps() { return JointSearch::step_names(); }

Plan plan_of(const Priced& planned) {
  Plan plan{planned};
  plan.schedule = compute_only(plan);
  plan.order.reset();
  return plan;
}

}  // namespace pfeife
