// Activations that take more, or less, memory than the formula of a mesh says: by what was
// measured of a layer, or of a whole run.
//
// Parameters, gradients and optimizer's state are counted, not estimated; what a formula lacks of a
// measured peak is in what layers keep for backward and hold while they run. It is taken to divide
// over tp, cp and ep, and to add up over microbatches and stages, as those bytes do themselves.
#pragma once

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// What layers [begin, end) keep for backward, each storage at its first saver.
Bytes kept_bytes(const Layers& layers, std::size_t begin, std::size_t end);
/// The most that a pass over one of them holds besides.
Bytes temporary_bytes(const Layers& layers, std::size_t begin, std::size_t end);

/// What each of layers [begin, end) keeps for backward and between its I and W becomes `kept` times
/// as much, what it holds while it runs `temporary` times. More is the layer's own; less comes off
/// what does not pass to another layer, until nothing of that is left.
void scale_activations(Layers& layers, std::size_t begin, std::size_t end, double kept,
                       double temporary);

/// What a measured peak says of the formula.
struct PeakResidual {
  Bytes formula;                 ///< the peak of that run by the formula
  double activation_factor = 1;  ///< MeshRun::activation_factor with which it is the measured one
};
/// `run`: the question's; the peak says how it was divided. Errors: ConfigError without a place if
/// that run cannot be, or if no activations give that peak.
PeakResidual peak_residual(const MeasuredPeak& peak, const MeshRun& run, const Network& network);

}  // namespace pfeife
