// Corrects the formula of a mesh's activation memory by a measured layer, or by a measured run.
//
// Parameters, gradients and optimizer's state are counted exactly, so the gap between the formula
// and a measured peak is assigned to what layers keep for backward and hold while they run. The gap
// is assumed to divide over tp, cp and ep, and to add up over microbatches and stages, as those
// bytes do themselves.
#pragma once

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Bytes that layers [begin, end) keep for backward; a storage that several save counts once.
Bytes kept_bytes(const Layers& layers, std::size_t begin, std::size_t end);
/// The largest temporary memory of a pass over one of layers [begin, end).
Bytes temporary_bytes(const Layers& layers, std::size_t begin, std::size_t end);

/// Multiplies by `kept` what each of layers [begin, end) keeps for backward and between its I and
/// W, and by `temporary` what it holds while it runs. Growth belongs to the layer itself; a
/// reduction takes from bytes that no other layer reads, until none of these are left.
void scale_activations(Layers& layers, std::size_t begin, std::size_t end, double kept,
                       double temporary);

/// What a measured peak says of the formula.
struct PeakResidual {
  Bytes formula;                 ///< the peak of that run by the formula
  double activation_factor = 1;  ///< MeshRun::activation_factor that gives the measured peak
};
/// `run`: the run that is planned; `peak` has the mesh of the measured run. Errors: ConfigError
/// without file and line if that mesh cannot be, or if no factor gives the peak.
PeakResidual peak_residual(const MeasuredPeak& peak, const MeshRun& run, const Network& network);

}  // namespace pfeife
