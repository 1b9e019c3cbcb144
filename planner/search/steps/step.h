// What runs a step of planning: it is timed and its work is checked. A step adds plans to a pool.
#pragma once

#include <functional>
#include <string_view>

#include "planner/search/pool/pool.h"
#include "planner/search/problem.h"

namespace pfeife {

/// Runs `add`, which adds to the pool, and then calls SearchOptions::after_step with its seconds.
/// `name`: for people, in the present tense of a list. Errors: those of `add`; an internal error if
/// the best plan of the pool is slower than before, or if the pool's bound is above a plan that it
/// holds for.
void take_step(std::string_view name, const Problem& problem, const SearchOptions& options,
               Pool& pool, const std::function<void()>& add);

}  // namespace pfeife
