// A descent whose every step is priced in full: for schedules that the fast search has no program
// for.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// The partition with cut number `cut` moved over legal positions: the next few each way. Cuts
/// inside of `uncut` are illegal, too.
std::vector<Partition> moved_cuts(const Layers& layers, const Partition& partition, std::size_t cut,
                                  const std::vector<LayerRange>& uncut = {});

/// Moves single cuts while that makes the plan faster, trying up to `most` plans.
Priced descended(const Problem& problem, Priced plan, std::size_t most);

/// All legal partitions into so many stages; none if they are more than a hundred.
std::vector<Partition> few_partitions(const Layers& layers, std::size_t stages);

/// What the plan lacks of the problem's memory, on the rank that lacks most.
Infeasible lack_of(const Problem& problem, const Priced& plan);

/// The choice at cuts where it fits: any, if they are few (few_partitions), else by moves of single
/// cuts while all ranks together lack less memory. Prices up to `most` partitions; nullopt: none of
/// them fits.
std::optional<Priced> moved_to_fit(const Problem& problem, Choice choice, std::size_t most);

/// The fastest of each schedule, the fastest of all first.
std::vector<Priced> best_of_each(std::vector<Priced> plans);

}  // namespace pfeife
