// Which device runs which rank: the orders of the devices that can differ at all, and those that
// look best.
#pragma once

#include "planner/search/search.h"

namespace pfeife {

/// The orders of `devices` (distinct) that differ in the kinds of their ranks or in the latency and
/// bandwidth between two of them; of equal ones the lexicographically smallest, all in
/// lexicographic order. nullopt if more than `most` orders would have to be looked at, once devices
/// that are interchangeable (of one kind, with equal paths to all others) are told apart no longer.
std::optional<std::vector<std::vector<DeviceId>>> device_orders(
    const Cluster& cluster, const std::vector<DeviceId>& devices, std::size_t most);

/// Orders of problem.device_of_rank that promise most, the best first, at most `keep`: each is
/// judged by the schedules and cuts of `plans` (found for any order), and by the same schedules on
/// equal-time cuts, by what transfers wait for under options.semantics, too. All orders that differ
/// if there are few, otherwise by exchanging two devices at a time, from the given order and from
/// some random ones. Memory limits must be the devices' own. Deterministic, whatever
/// options.threads.
struct PromisingOrders {
  std::vector<std::vector<DeviceId>> orders;
  bool all = false;  ///< `orders` has every order that differs
};
PromisingOrders promising_orders(const Problem& problem, const std::vector<Priced>& plans,
                                 std::size_t keep, const SearchOptions& options);

/// `problem` with other devices for its ranks; memory limits go with the devices.
Problem with_devices(const Problem& problem, const std::vector<DeviceId>& device_of_rank);

}  // namespace pfeife
