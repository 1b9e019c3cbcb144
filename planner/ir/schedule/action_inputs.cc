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

static bool is_last_stage(const Action& action, const StageGraph& graph) {
  return action.stage.index() + 1 == graph.stages;
}

std::optional<Op> collective_read(const Action& action, const StageGraph& graph) {
  if (graph.head_barriers == 0) return std::nullopt;
  if (action.op == Op::HeadShare) return Op::BroadcastHead;
  if (action.op == Op::HeadRest) return Op::ReduceShare;
  if (makes_input_gradient(action.op) && is_last_stage(action, graph))
    return graph.head_barriers == 1 ? Op::ReduceShare : Op::ReduceRest;
  return std::nullopt;
}

std::optional<Op> collective_made(const Action& action, const StageGraph& graph) {
  if (graph.head_barriers == 0) return std::nullopt;
  if (action.op == Op::HeadShare) return Op::ReduceShare;
  if (action.op == Op::HeadRest && graph.head_barriers == 2) return Op::ReduceRest;
  if (action.op == Op::Forward && is_last_stage(action, graph)) return Op::BroadcastHead;
  return std::nullopt;
}

std::size_t collective_parts(Op collective, const StageGraph& graph) {
  return collective == Op::BroadcastHead ? 1 : graph.stages;
}

}  // namespace pfeife
