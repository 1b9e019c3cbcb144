// The fastest order of the actions for given costs, by trying all: of few stages and microbatches.
//
// Microbatches are alike, so every stage takes them in turn, and how far the stages are says what
// is left to do. Of the ways to get there only those are followed that no other one beats: by the
// times at which ranks are free and values come. B is tried beside I and W, for every stage apart.
//
// What a rank holds depends on when values come: one that is made earlier fills memory earlier. So
// there are two ways to count them. Receives::AtNeed: earlier is never worse, and no order at all
// is faster than what is found, whichever way its stages take microbatches. Receives::AsReady, by
// the rule of planner/cost/estimate/memory.h: only ways that agree in all times, counted from the
// present, are as good as each other. Not modelled: reductions of shared parameters.
#pragma once

#include <optional>

#include "planner/search/orders/row_memory.h"

namespace pfeife {

struct OrderTrial {
  /// The fastest order of those that fit, compute-only; none: none takes less than `enough`.
  std::optional<Schedule> fastest;
  std::int64_t time = 0;  ///< ns of its step; 0 without one
  bool tried_all = true;  ///< else the budget was spent
};

/// Few enough for fastest_order().
bool few_orders(const Placement& placement, std::size_t microbatches);

/// The fastest order below `enough` ns within the limits ([rank]). Takes one off `budget` for every
/// state that is gone on from. Needs few_orders().
OrderTrial fastest_order(const StageCosts& costs, const Placement& placement,
                         std::size_t microbatches, const std::vector<Bytes>& limit,
                         Receives receives, std::int64_t enough, std::size_t& budget);

}  // namespace pfeife
