// Plans whose devices are chosen, too: which device runs which rank.
#pragma once

#include "planner/search/choices/alternatives.h"

namespace pfeife {

/// What is known of every order of the devices of a given problem.
struct GivenDevices {
  bool all_listed = false;  ///< every order that differs is among the problems
  /// The bound covers plans of all of them that recompute so much.
  Recompute recompute = Recompute::None;
  /// Otherwise, if options.certificate: what holds whatever the order, of devices that are as good
  /// as the best (relaxed_devices.h) or of work that the devices share at will.
  std::shared_ptr<const Certificate> certificate;
};

struct BestDevices {
  BestAlternative found;
  std::vector<Problem> problems;    ///< those of found.all, each with the order of its devices
  std::vector<std::size_t> origin;  ///< [of problems] number of the given problem
  std::vector<GivenDevices> given;  ///< [given problem]
};

/// How many searches search_devices makes at most.
SearchCount most_device_searches(std::size_t problems);

/// search_alternatives over every given problem with each of some orders of its devices: all that
/// differ if they are few, else those that promise most (device_orders.h). The bound holds for all
/// orders: the smallest of theirs if all were listed, else that of a problem in which every device
/// is as good as the best at everything, or of work shared by the devices if that is higher.
/// Deterministic.
BestDevices search_devices(const std::vector<Problem>& problems, const SearchOptions& options,
                           const Searcher& searcher);

}  // namespace pfeife
