// A stage's passes as programs of two streams, from the steps of its layers (Layers::steps): what
// actions side by side take, and which collectives nothing hides.
//
// Not modelled: that messages to other stages could leave before the whole action has ended.
#pragma once

#include <array>
#include <optional>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/schedule/streams.h"

namespace pfeife {

/// The steps of a stage on its rank, as long as the stage's costs say.
struct StageSteps {
  /// Computed before the first step: what each action has besides, and in backward what is
  /// recomputed.
  Nanoseconds before_forward{0}, before_backward{0};
  std::vector<PassStep> steps;
  friend bool operator==(const StageSteps&, const StageSteps&) = default;
};

/// [stage] Layers that have steps; `stages`: their costs. Linear in the steps.
std::vector<StageSteps> stage_steps(const Layers& layers, const Partition& partition,
                                    const Placement& placement, const Cluster& cluster,
                                    const std::vector<StageCost>& stages);

/// What of a backward is in a program.
enum class BackwardPart { Whole, Input };

/// A forward of one stage beside a backward of another one. Each is a chain; weight gradients wait
/// for the step of their product, and nothing waits for them. Compute lasts `overlap_factor` times
/// as long.
std::vector<WorkPiece> side_by_side_program(const StageSteps& forward, const StageSteps& backward,
                                            BackwardPart part, double overlap_factor);

/// Sets the costs' side_by_side for each two stages of a rank, and that of the last microbatch;
/// nothing if the layers have no steps. Each distinct pair is scheduled once.
void add_side_by_side(const Layers& layers, const Partition& partition, const Placement& placement,
                      const Cluster& cluster, StageCosts& costs);

}  // namespace pfeife
