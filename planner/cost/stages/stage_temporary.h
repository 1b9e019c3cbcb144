// How far a stage's memory rises within an action above what it holds between actions.
#pragma once

#include "planner/cost/stages/summed_layers.h"

namespace pfeife {

/// The temporary of a stage with the layers [begin, end), whatever the others. With all that the
/// microbatch has saved in place, a stage is at its highest only in its last layers: in F what
/// later layers save is not there yet, in B and I it is gone again, in W what later layers kept for
/// it is. In I it is replaced by what W needs. What a stage receives is there throughout, values
/// and gradients; its gradients for other stages come up layer by layer. Gradients that pass over a
/// layer between two others of the stage wait beside it (LayerValue::waiting_gradient). In an F
/// that keeps nothing, a layer has what it would save in place until it ends, and of earlier layers
/// what is still to be read. Linear in the stage's layers, their values and the layers that these
/// pass over.
StageTemporary stage_temporary(const SummedLayers& sums, std::size_t begin, std::size_t end);

}  // namespace pfeife
