// Cuts to start from: simple ones, and blends of time and memory where those do not fit.
#pragma once

#include "planner/search/cuts/min_max.h"
#include "planner/search/price/candidate.h"

namespace pfeife {

/// Equal-time cuts, then equal shares of the time (on the first kind of device) and of the number
/// of layers; those that exist. Empty: the model has too few legal cuts.
std::vector<Cuts> simple_cuts(const CutModel& model, const Placement& placement);

/// Trades time for memory: min-max cuts where the load of a stage is its share of `slowest` plus
/// growing weights times its share of the memory. Steers only; feasibility is judged elsewhere.
/// Best by score of those tried and `fastest`.
Cuts roomy_cuts(Candidates& candidates, const Cuts& fastest);

}  // namespace pfeife
