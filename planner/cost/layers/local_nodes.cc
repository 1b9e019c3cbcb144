#include "planner/cost/layers/grouping_parts.h"
#include "planner/cost/operators/table_effects.h"
#include "planner/ir/schedule/graph_split.h"

namespace pfeife {

std::vector<bool> local_nodes(const GraphFacts& facts) {
  return free_nodes(facts.graph, table_effects(facts.graph));
}

}  // namespace pfeife
