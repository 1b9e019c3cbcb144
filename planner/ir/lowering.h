// The passes of lower(), one file each. Internal to planner/ir: everybody else includes lower.h.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/action_inputs.h"
#include "planner/ir/lower.h"

namespace pfeife::lowering {

/// What every pass needs to know of the pipeline.
struct Context {
  const StageCosts& costs;
  const Placement& placement;
  StageGraph stages;
  std::size_t microbatches = 0;
  StageEdges edges;  ///< of stages

  RankId rank(StageId s) const { return placement.rank(s); }
  bool crosses(const StageGraph::Edge& e) const { return rank(e.from) != rank(e.to); }
};
/// The action that makes what travels that way.
inline Action maker(StageId stage, MicrobatchId microbatch, Direction direction) {
  return direction == Direction::Forward ? forward(stage, microbatch) : backward(stage, microbatch);
}
Context context_of(const Schedule& schedule, const StageCosts& costs, const Placement& placement);

/// UNSHARD of the next three stages a rank will compute, RESHARD of those not among them.
void add_unshard_reshard(Schedule& schedule);
/// REDUCE_GRAD after the last backward of every stage (`all`) or of the stages that share a
/// parameter.
void add_reduce_grad(Schedule& schedule, const Context& context, bool all);
/// OPTIMIZER_STEP at the end of the row, one a stage.
void add_optimizer_steps(Schedule& schedule, const Context& context);

/// SEND and RECV by the time values are ready.
Schedule add_transfers_ready(const Schedule& schedule, const Context& context);
/// SEND and RECV where torch.distributed.pipelining puts them.
Schedule add_transfers_torch(const Schedule& schedule, const Context& context);

/// Tells that the order can never run. `waiting` = what each stopped rank is waiting at, one
/// sentence each.
[[noreturn]] void throw_cyclic(const std::vector<std::string>& waiting);

}  // namespace pfeife::lowering
