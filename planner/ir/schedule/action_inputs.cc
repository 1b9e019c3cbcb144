#include "planner/ir/schedule/action_inputs.h"

namespace pfeife {

StageEdges::StageEdges(const StageGraph& graph) : into(graph.stages), out_of(graph.stages) {
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    into[graph.edges[e].to.index()].push_back(e);
    out_of[graph.edges[e].from.index()].push_back(e);
  }
}

std::optional<Op> input_of_its_stage(Op op) {
  if (makes_input_gradient(op)) return Op::Forward;
  if (op == Op::BackwardWeight) return Op::BackwardInput;
  return std::nullopt;
}

}  // namespace pfeife
