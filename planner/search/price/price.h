// The one way from a choice to its price.
#pragma once

#include "planner/cost/estimate/evaluate.h"
#include "planner/ir/result/need.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Estimate, memory and rows of the choice. It receives late if it says so, or if the problem
/// allows it and it does not fit otherwise.
Priced price(const Problem& problem, Choice choice);

/// [rank] What must fit: where the problem has an allocator and what is allocated fits, what is
/// reserved, of ranks so full that it may be too much, up to the first of which it is; else what is
/// allocated. `choice`: its cuts, placement and recomputation. Plays every tensor of these ranks.
std::vector<Bytes> must_fit(const Problem& problem, const Choice& choice, const Prices& prices);

/// The same of a plan.
std::vector<Bytes> must_fit(const Problem& problem, const Priced& plan);

/// The host that lacks most for what a plan of price() offloads; nothing if all have enough.
std::optional<Shortage> host_shortage(const Problem& problem, const Priced& plan);

/// The price of the choice if it fits the problem's devices and hosts.
std::optional<Priced> fitting(const Problem& problem, Choice choice);

/// `choice` with prices that are known.
Priced priced(Choice choice, Prices prices);

}  // namespace pfeife
