// A local search over cuts that prices every step in full, for schedules that the fast search does
// not know.
#pragma once

#include <optional>
#include <vector>

#include "planner/search/problem.h"

namespace pfeife {

/// Copies of `partition` with cut number `cut` at the nearest few legal positions in each
/// direction. Positions inside of a range of `uncut` are illegal, too.
std::vector<Partition> moved_cuts(const Layers& layers, const Partition& partition, std::size_t cut,
                                  const std::vector<LayerRange>& uncut = {});

/// Moves single cuts while that makes the plan faster, trying up to `most` plans.
Priced descended(const Problem& problem, Priced plan, std::size_t most);

/// All legal partitions into `stages` stages; empty if they are more than a hundred.
std::vector<Partition> few_partitions(const Layers& layers, std::size_t stages);

/// The shortage of the rank that is furthest above its limit, negative if all fit.
Infeasible lack_of(const Problem& problem, const Priced& plan);

/// `choice` with cuts that fit the memory: the first of all if they are few (few_partitions), else
/// by moves of single cuts while the ranks' total shortage falls. Prices up to `most` partitions;
/// nullopt: none of them fits.
std::optional<Priced> moved_to_fit(const Problem& problem, Choice choice, std::size_t most);

/// The fastest of each schedule, the fastest of all first.
std::vector<Priced> best_of_each(std::vector<Priced> plans);

}  // namespace pfeife
