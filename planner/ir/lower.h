// From a compute-only schedule to one that can run: transfers, reductions, optimizer steps.
#pragma once

#include "planner/ir/schedule.h"
#include "planner/ir/stage_costs.h"

namespace pfeife {

enum class TransferOrder {
  Ready,  ///< by the time they are ready in a contention-free run; a projection of one global
          ///< order: no deadlock
  Torch,  ///< torch.distributed.pipelining's placement, cell for cell
};

struct LoweringOptions {
  TransferOrder transfers = TransferOrder::Ready;
  bool keep_idle = false;      ///< an empty cell costs its rank a visit (torch placement only)
  bool unshard = false;        ///< add UNSHARD and RESHARD, at most 3 active stages
  bool reduce_grad = true;     ///< add REDUCE_GRAD to tied stages
  bool optimizer_step = true;  ///< add OPTIMIZER_STEP, last of every stage
};

/// Adds what a compute-only schedule lacks; empty cells are dropped first.
/// `costs` orders the transfers (Ready) and says which stages exchange what; use uniform_costs for
/// unit costs. Errors: ConfigError if the compute-only schedule itself can never run (a cyclic
/// order), naming the waiting actions.
Schedule lower(const Schedule& compute_only, const StageCosts& costs, const Placement& placement,
               const LoweringOptions& options = {});

}  // namespace pfeife
