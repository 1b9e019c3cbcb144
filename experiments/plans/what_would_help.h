// A case in which nothing fits: which changes of its config would help.
#pragma once

#include <functional>
#include <vector>

#include "planner/ir/request/request.h"
#include "planner/ir/result/result.h"
#include "planner/search/search.h"

namespace pfeife {

/// The model of a config, for its microbatch size; nullptr = there is none.
using LayersOf = std::function<const Layers*(const Request&)>;

/// Why no plan was found, of so many schedules: rank, bytes, and whether it is proven that there is
/// none; if plans were to offload, what hosts lack for them. The answer is Infeasible.
std::string shortage(const Answer& answer, std::size_t schedules, bool offload);

/// Changes that were tried on `problem`, the case's, with what came of each.
std::vector<TriedChange> what_would_help(const Request& config, const Problem& problem,
                                         const LayersOf& layers_of, std::size_t threads);

}  // namespace pfeife
