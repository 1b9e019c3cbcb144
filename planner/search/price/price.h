// The one way from a choice to its price.
#pragma once

#include "planner/cost/estimate/evaluate.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Estimate, memory and rows of the choice. It receives late if it says so, or if the problem
/// allows it and it does not fit otherwise.
Priced price(const Problem& problem, Choice choice);

/// The price of the choice if it fits the problem's devices.
std::optional<Priced> fitting(const Problem& problem, Choice choice);

/// `choice` with prices that are known.
Priced priced(Choice choice, Prices prices);

}  // namespace pfeife
