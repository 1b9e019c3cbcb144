// Layers of a mesh with times that were measured of them, in place of the roofline's.
//
// A row is of a whole transformer layer; its pieces share the row's times, and its bytes, as they
// do by the roofline. Collectives stay modelled, on top. A layer that is recomputed as a whole, or
// whose attention is, takes its forward again.
#pragma once

#include <optional>
#include <string>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/measured_layers.h"

namespace pfeife {

/// Why the file does not have what the run needs, in words; nothing if it has.
std::optional<std::string> missing_layers(const MeshRun& run, const MeasuredLayers& measured);

/// `layers`: an embedding, kPiecesOfLayer for each of the run's transformer layers, a head, with
/// collectives in their times. Errors: ConfigError if the file lacks a layer, or has another
/// model's.
void take_measured_layers(Layers& layers, const MeshRun& run, const MeasuredLayers& measured);

/// "of a microbatch's 34 layers 30 as measured (layers.csv), 4 interpolated between measured ones".
std::string coverage_text(const MeshRun& run, const MeasuredLayers& measured);

}  // namespace pfeife
