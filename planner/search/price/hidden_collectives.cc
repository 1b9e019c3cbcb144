#include "planner/search/price/hidden_collectives.h"

#include <algorithm>

#include "planner/schedules/families.h"

namespace pfeife {

bool hides_collectives(const Layers& layers, const ScheduleSpec& spec) {
  return !layers.collectives.empty() && family(spec.family).side_by_side;
}

bool hides_collectives(const Problem& problem) {
  return std::ranges::any_of(problem.schedules, [&](const ScheduleSpec& spec) {
    return hides_collectives(problem.layers, spec);
  });
}

}  // namespace pfeife
