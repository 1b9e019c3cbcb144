// Cuts to start from: exact min-max by time, and blends of time and memory when that does not fit.
#pragma once

#include "planner/search/candidate.h"
#include "planner/search/min_max.h"

namespace pfeife {

/// Trades time for memory: min-max cuts where the load of a stage is its share of `slowest` plus
/// growing weights times its share of the memory. Steers only; feasibility is judged elsewhere.
/// Best by score of those tried and `fastest`.
Cuts roomy_cuts(Candidates& candidates, const Cuts& fastest);

}  // namespace pfeife
