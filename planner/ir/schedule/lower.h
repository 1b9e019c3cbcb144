// From a compute-only schedule to one that can run: transfers, reductions, optimizer steps.
#pragma once

#include <functional>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

enum class TransferOrder {
  Ready,  ///< by the time they are ready in a contention-free run; a projection of one global
          ///< order: no deadlock
  Torch,  ///< torch.distributed.pipelining's placement, cell for cell
};

/// Which stages get a REDUCE_GRAD after their last backward.
enum class ReduceGrad {
  None,
  Tied,        ///< those that share a parameter with another stage or have replicas
  EveryStage,  ///< all, as torch writes it; costs nothing where there is nothing to reduce
};

struct LoweringOptions {
  TransferOrder transfers = TransferOrder::Ready;
  bool keep_idle = false;  ///< an empty cell costs its rank a visit (torch placement only)
  bool unshard = false;    ///< add UNSHARD and RESHARD, at most 3 active stages
  ReduceGrad reduce_grad = ReduceGrad::Tied;
  bool optimizer_step = true;  ///< add OPTIMIZER_STEP, one a stage, at the end of the row
};

/// Any SEND, RECV, OFFLOAD or RELOAD in it?
bool has_transfers(const Schedule& schedule);

/// REDUCE_NORM at the end of every row, of the stage of its last backward, and optimizer steps
/// behind it. Nothing if it is there.
void add_norm_reduction(Schedule& lowered);

/// Adds what a compute-only schedule lacks; empty cells are dropped first.
/// `costs` orders the transfers (Ready) and says which stages exchange what; use uniform_costs for
/// unit costs. Costs with a norm make rows with REDUCE_NORM; costs of stages that offload, OFFLOAD
/// and RELOAD of the microbatches that with_offload() finds room for.
/// Errors: ConfigError if the order can never run (naming the waiting actions), has transfers
/// already, or does something twice or on a rank where its stage is not placed. Not a judge of
/// completeness: see validate(). Linear but for a queue of the transfers under way.
Schedule lower(const Schedule& compute_only, const StageCosts& costs, const Placement& placement,
               const LoweringOptions& options = {});

/// Lowered rows with OFFLOAD and RELOAD of the `wanted` microbatches of stages that offload, as far
/// as nothing then waits for them in a contention-free run: each OFFLOAD as early and each RELOAD
/// as late as their engine is free, in the order of F and of B. First fit in the order of F: a
/// microbatch that is back before it is away, or for whose sake one before it would be, stays.
/// Errors: ConfigError if microbatches are in slices. Quadratic in the microbatches of a rank.
Schedule with_offload(const Schedule& lowered, const StageCosts& costs, const Placement& placement,
                      const std::function<bool(StageId, MicrobatchId)>& wanted);

/// The rows with every RECV right before the action that reads the message: no order of receiving
/// needs less memory. They may hang where a SEND waits for its RECV.
Schedule with_receives_at_need(const Schedule& lowered);

/// The same rows if they cannot hang, whatever blocks and whatever the queues; else the rows in
/// which a RECV passes actions alone, which cannot (lower_receives.cc).
Schedule with_late_receives(const Schedule& lowered, const StageGraph& stages,
                            const Placement& placement);

}  // namespace pfeife
