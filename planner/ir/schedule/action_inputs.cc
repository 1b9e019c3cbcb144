#include "planner/ir/schedule/action_inputs.h"

namespace pfeife {

StageEdges::StageEdges(const StageGraph& graph) : into(graph.stages), out_of(graph.stages) {
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    into[graph.edges[e].to.index()].push_back(e);
    out_of[graph.edges[e].from.index()].push_back(e);
  }
}

std::optional<MicrobatchId> slice_before(const Action& action) {
  const MicrobatchId m = *action.microbatch;
  if (m.slices == 1) return std::nullopt;
  const std::optional<Direction> way = operation(action.op).passes;
  if (way == Direction::Forward && m.slice() > 0) return MicrobatchId{m.value - 1, m.slices};
  if (way == Direction::Backward && m.slice() + 1 < m.slices)
    return MicrobatchId{m.value + 1, m.slices};
  return std::nullopt;
}

}  // namespace pfeife
