// The best plan of several problems that do the same work: other microbatch sizes of one batch,
// other orders of the devices or of the layers. Bounds decide which of them are searched at all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace pfeife {

/// How one problem is searched: search(), or a variation of it that returns as much.
using Searcher = std::function<Answer(const Problem&, const SearchOptions&)>;

/// Bound of a problem that is proven to have no plan.
constexpr Nanoseconds kNothingFits = Nanoseconds::max();

/// What is known of one of the problems.
struct AlternativeOutcome {
  std::optional<Priced> plan;            ///< its best; empty: it has none, or was not searched
  std::optional<Infeasible> infeasible;  ///< if it was searched in vain
  std::optional<Nanoseconds> timed;      ///< SearchOptions::times, the least of its plans
  Nanoseconds listed{0};  ///< no plan of its listed schedules is faster; kNothingFits = none fits
  Nanoseconds any_order{0};                 ///< nor a plan of any order of the same placements
  bool builds = false;                      ///< orders built for the costs are among its schedules
  Recompute recompute = Recompute::Choose;  ///< what plan and bounds are of
  bool searched = false;
  /// No plan of it is faster; kNothingFits = none fits.
  Nanoseconds bound() const { return builds ? any_order : listed; }
};

struct BestAlternative {
  std::size_t best = 0;  ///< number of the problem that `outcome` is of
  /// bound: the smallest of all problems, which no certificate proves if they are several;
  /// certificate: of the best problem alone; candidates: of all searches; unfinished: problems that
  /// may yet be best, but were searched with little effort alone.
  Answer outcome;
  std::vector<AlternativeOutcome> all;  ///< [problem]
};

/// The least of options.times of the best plans of a few schedules; nullopt if there is none, or
/// nobody knows.
std::optional<Nanoseconds> least_time(const Problem& problem, const Answer& answer,
                                      const SearchOptions& options);

/// How many of the problems that look best are searched with a fourth of the effort (0 = none), and
/// then how many with all of it.
struct Finals {
  std::size_t short_ones = 0, full = 4;
};
/// search_work of all that search_alternatives makes at most.
double most_work(std::size_t problems, const SearchOptions& options, const Finals& finals = {});

/// Searches the problem with the best plan. A problem is left out if not even a bound that takes no
/// time allows it to be faster than the best plan so far; the others are searched with little
/// effort, and those few that may still be best with all of `options`: best by options.times if it
/// is there, else by the estimate. If nothing fits, the problem
/// that lacks least is best. At least one problem; ties go to the first. Deterministic.
BestAlternative search_alternatives(const std::vector<Problem>& problems,
                                    const SearchOptions& options, const Searcher& searcher,
                                    const Finals& finals = {});

/// Why it is not the best; of the best: chosen.
Reason why_not(const BestAlternative& found, std::size_t problem);

}  // namespace pfeife
