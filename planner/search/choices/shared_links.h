// The fastest plan where transfers share links: what the estimate, which lets each of them run
// alone, cannot tell.
//
// The times come from the caller, who has a simulator; the search knows none. Every time is taken
// to be at least the plan's estimate, what all messages of a queue take, and, where links are
// shared, what the plan sends over any of them at its full speed: a plan that by these bounds is no
// faster than the best one is not timed.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "planner/ir/schedule/stage_costs.h"
#include "planner/search/problem.h"

namespace pfeife {

/// How long a step takes if no transfer waits for another one or shares a link with it, and how
/// long it takes.
struct StepTime {
  Nanoseconds alone{0}, shared{0};
  friend bool operator==(const StepTime&, const StepTime&) = default;
};

/// What tells the times of plans.
struct LinkSimulator {
  /// [plan] The same for equal plans. Not called in several threads at once.
  std::function<std::vector<StepTime>(std::span<const Priced>)> times;
  Links links = Links::Shared;
  Queues queues = Queues::None;
};

struct TimedPlan : Priced {
  StepTime time;
};

struct SharedLinksOutcome {
  std::vector<TimedPlan> plans;  ///< the fastest with shared links first; options.keep at most
  bool links_bind = false;       ///< so plans were searched with links in mind
  bool unfinished = false;       ///< the budget ended before that search did
  std::size_t timed = 0;         ///< plans
};

/// Times all of `asked` (plans that fit), and a few dozen of `known` that differ in family, stages
/// a rank and traffic. If links bind, also what the search finds for slower links, and plans with
/// slightly other cuts or another schedule, as long as that helps and something of the budget is
/// left: options.iterations, counted in tasks of the plans timed. So none of `known` that was
/// timed, and none of `asked`, is faster than the first of the result. Deterministic, whatever
/// options.threads. No plans if there are none in either list.
SharedLinksOutcome fastest_with_shared_links(const Problem& problem, std::vector<Priced> known,
                                             std::vector<Priced> asked,
                                             const SearchOptions& options,
                                             const LinkSimulator& simulator);

}  // namespace pfeife
