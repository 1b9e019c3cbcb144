// What a config leaves open besides cuts and schedule: the microbatch size at a given global batch,
// the order of the layers, the device of each rank. Every way to settle it is one more problem for
// the search.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/plans/what_would_help.h"
#include "planner/search/choices/alternatives.h"
#include "planner/search/pool/pool.h"

namespace pfeife {

/// A case in which nothing is open any more.
struct SettledCase {
  Request config;
  const Layers* layers = nullptr;
};

/// Why the search has no schedule for a settled case; "" = it has.
using WhyImpossible = std::function<std::string(const Request&)>;

/// The ways to settle `config`, devices apart: every divisor of an open global batch for which
/// there are a model and schedules, and of which a step has not more than 16 microbatches a device
/// (or 64 in all); of an open order every one that makes other layers. Errors: ConfigError if that
/// leaves none.
std::vector<SettledCase> settled_cases(const Request& config, const Layers& layers,
                                       const LayersOf& layers_of,
                                       const WhyImpossible& why_impossible);

/// What a search over settled cases came to.
struct SettledSearch {
  SettledCase best;
  Pool pool;
};

/// Searches the problems of `cases` ([case], on the first devices), and if config.plan asks for it
/// the order of their devices.
SettledSearch search_settled(const std::vector<SettledCase>& cases,
                             const std::vector<Problem>& problems, SearchOptions options,
                             const Searcher& searcher);

}  // namespace pfeife
