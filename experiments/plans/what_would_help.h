// A case in which nothing fits: which changes of its config would help.
#pragma once

#include <functional>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/ir/result/result.h"
#include "planner/search/search.h"

namespace pfeife {

/// The model of a config, for its microbatch size; nullptr = there is none.
using LayersOf = std::function<const Layers*(const CaseConfig&)>;

/// Why no plan was found: rank, bytes, and whether it is proven that there is none.
std::string shortage(const Infeasible& infeasible, std::size_t schedules);

/// Changes that were tried on `problem`, the case's, with what came of each.
std::vector<TriedChange> what_would_help(const CaseConfig& config, const Problem& problem,
                                         const LayersOf& layers_of, std::size_t threads);

}  // namespace pfeife
