// The passes of lower(), one file each. Internal to planner/ir: everybody else includes lower.h.
#pragma once

#include <string>
#include <vector>

#include "planner/ir/schedule/action_inputs.h"
#include "planner/ir/schedule/lower.h"

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
/// REDUCE_GRAD right after the last backward of every stage that shares no parameter. (That of a
/// stage that does covers its replicas, too.)
void add_untied_reduce_grad(Schedule& schedule, const Context& context);
/// OPTIMIZER_STEP at the end of the row, one a stage.
void add_optimizer_steps(Schedule& schedule, const Context& context);

/// The reductions of stages that share parameters, directly or through others. Each is one entry of
/// the order of all that happens, as a transfer is: where the last weight gradient of its stages is
/// made. So it never waits for anything after it, also where REDUCE_GRAD holds its ranks.
class TiedReductions {
 public:
  /// A stage that has a REDUCE_GRAD in its row keeps that.
  TiedReductions(const Schedule& schedule, const Context& context);
  /// Tell every action once: the stages whose REDUCE_GRADs can follow it, null if none can.
  const std::vector<StageId>* completed_by(const Action& action);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Group {
    std::vector<StageId> stages;  ///< that get a REDUCE_GRAD
    std::size_t gradients_to_come = 0;
  };
  std::vector<std::size_t> group_;  // [stage]
  std::vector<Group> groups_;
};

/// SEND and RECV by the time values are ready; REDUCE_GRAD of stages that share parameters
/// (`reduce`) when the last of them is.
Schedule add_transfers_ready(const Schedule& schedule, const Context& context, bool reduce);
/// SEND and RECV where torch.distributed.pipelining puts them; REDUCE_GRAD as above.
Schedule add_transfers_torch(const Schedule& schedule, const Context& context, bool reduce);

/// Tells that the order can never run. `waiting` = what each stopped rank is waiting at, one
/// sentence each.
[[noreturn]] void throw_cyclic(const std::vector<std::string>& waiting);

}  // namespace pfeife::lowering
