// Where the time of each rank goes: a stacked bar a rank, the plans of a case one above the other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plots/figure/theme.h"
#include "plots/timeline/plans.h"

namespace pfeife {

/// The terms of a rank's step, which add up to it exactly: what it computes, by kind; its idle time
/// before its first computation and after its last (warm-up, cool-down) and, of the idle time
/// between, as much as it has less to compute than the busiest rank (imbalance) and the rest
/// (steady state); the other terms of its attribution. Only dependency waits are split: what it
/// waits for transfers and queues is theirs.
std::vector<plots::Cause> rank_times(const Trace& trace, RankId rank);

/// An SVG document, to one scale; figures as tooltips.
std::string rank_times_svg(std::span<const ComparedPlan> plans, int width);

}  // namespace pfeife
