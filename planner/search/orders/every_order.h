// Where a problem is tiny, the best of all orders of the actions on all cuts.
#pragma once

#include <optional>

#include "planner/search/price/cut_model.h"
#include "planner/search/problem.h"

namespace pfeife {

/// At most two ranks, three microbatches of four stages or two of six, and few cuts; memory by
/// lifetimes.
bool may_try_every_order(const CutModel& model, const Problem& problem, const ScheduleSpec& spec);

struct EveryOrder {
  std::optional<Priced> faster;  ///< the best, with its order; none: none was found
  /// ns that no order goes below which takes microbatches in turn: the time of `faster` or `enough`
  /// if all were tried, else less, at least 0.
  double bound = 0;
};

/// Tries every order of the stages of `spec`, on all cuts or the given ones (Problem::cuts), for
/// plans that fit and take less than `enough` ns; each B is whole or in two parts. Deterministic;
/// the work is limited by a count.
EveryOrder try_every_order(const CutModel& model, const Problem& problem, const ScheduleSpec& spec,
                           double enough);

/// The order also runs where every stage waits for its neighbours, as it may on other cuts. One
/// that was found among all need not: stages without a link come in any order.
bool runs_on_a_chain(const Schedule& compute_only);

}  // namespace pfeife
