// Plans whose devices are chosen, too: which device runs which rank.
#pragma once

#include "planner/search/choices/alternatives.h"

namespace pfeife {

struct BestDevices {
  BestAlternative found;
  std::vector<Problem> problems;    ///< those of found.all, each with the order of its devices
  std::vector<std::size_t> origin;  ///< [of problems] number of the given problem
};

/// search_work of all searches that search_devices makes at most.
double most_device_work(std::size_t problems, const SearchOptions& options);

/// search_alternatives over every given problem with each of some orders of its devices: all that
/// differ if they are few, else those that promise most (device_orders.h). The bound holds for all
/// orders: the smallest of theirs if all were listed, else what holds whatever the order
/// (any_devices_bound). Deterministic.
BestDevices search_devices(const std::vector<Problem>& problems, const SearchOptions& options,
                           const Searcher& searcher);

}  // namespace pfeife
