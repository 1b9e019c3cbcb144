// What would help when nothing fits: changes of the problem, each tried by a short search, so that
// what is said to help is known to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/search/search.h"

namespace pfeife {

/// What a problem could be changed to.
struct Surroundings {
  /// Schedules for so many ranks and microbatches: those the user listed, or all families.
  std::function<std::vector<ScheduleSpec>(std::size_t ranks, std::size_t microbatches, bool all)>
      schedules;
  std::vector<DeviceId> devices;    ///< all there are, those of the problem first
  std::vector<Bytes> memory_limit;  ///< [of devices]
  /// The model for microbatches of another size; nullptr = there is none. May be empty.
  std::function<const Layers*(std::int64_t microbatch_size)> layers;
};

/// A change that was tried.
struct Remedy {
  std::string change;  ///< "6 devices instead of 4"
  std::size_t devices = 0, microbatches = 0;
  std::int64_t microbatch_size = 1;
  std::optional<Priced> plan;      ///< nullopt: nothing was found even so
  std::optional<Infeasible> lack;  ///< then, what was closest
};

/// Into how many stages a model can be cut.
std::size_t most_stages(const Layers& layers);

/// Tries, one kind after the other: searched cuts instead of given ones, recomputation, expandable
/// segments of the allocator where it has none (named only if they help), all
/// families instead of the listed ones (fewer microbatches in flight), more devices, smaller
/// microbatches at an equal global batch. Of devices the fewest that help are named, of microbatch
/// sizes the largest. A model of too few layers is tried on fewer devices only. `problem` must have
/// no plan. Deterministic, whatever options.threads.
std::vector<Remedy> remedies(const Problem& problem, const Surroundings& surroundings,
                             const SearchOptions& options);

}  // namespace pfeife
