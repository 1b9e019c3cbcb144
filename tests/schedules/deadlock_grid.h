// Ready order never deadlocks: every accepted point of a grid, under every kind of queue that holds
// something up.
#pragma once

#include <gtest/gtest.h>

#include "planner/ir/schedule/dependency_graph.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {

/// Points of all families with all their knobs, D <= ranks, N <= microbatches, V <=
/// stages_per_rank, that deadlock when lowered in ready order; counts all points into `points`.
inline std::vector<std::string> deadlocks_of_grid(std::size_t ranks, std::size_t microbatches,
                                                  std::size_t stages_per_rank,
                                                  std::size_t& points) {
  std::vector<std::size_t> all_counts;
  for (std::size_t v = 1; v <= stages_per_rank; ++v) all_counts.push_back(v);
  std::vector<std::string> found;
  for (std::size_t d = 1; d <= ranks; ++d)
    for (std::size_t n = 1; n <= microbatches; ++n)
      for (const ScheduleSpec& spec : search_set(d, n, all_counts)) {
        const StageCosts costs = uniform_costs(spec.stages(), Nanoseconds{20}, Nanoseconds{20},
                                               Nanoseconds{20}, Nanoseconds{1});
        const Placement placement = placement_for(spec);
        const Schedule lowered = lower(generate(spec), costs, placement);
        ++points;
        // Blocking transfers hold the ranks themselves: then all queue settings are one.
        for (const Semantics& semantics :
             {Semantics{Queues::Rank, Links::Delay, true}, Semantics{Queues::Rank},
              Semantics{Queues::Pair}, Semantics{Queues::Edge}})
          if (!task_order(dependencies(lowered, stage_graph(costs), placement, semantics))
                   .blocked.empty())
            found.push_back(spec.family + " D=" + std::to_string(d) + " N=" + std::to_string(n) +
                            " V=" + std::to_string(spec.stages_per_rank) + " " + knobs(spec) + " " +
                            to_string(semantics.queues) + (semantics.blocking ? " blocking" : ""));
      }
  return found;
}

}  // namespace pfeife
