// Replaces the roofline's times of a mesh's layers by measured ones.
//
// A row is of a whole transformer layer; its pieces divide the row's times and bytes in the
// proportions of the roofline. Collectives stay modelled, on top. Recomputation of a layer, or of
// its attention, adds the forward of that part.
#pragma once

#include <optional>
#include <string>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/model/measured_layers.h"

namespace pfeife {

/// Why the file does not have what the run needs, in words; nullopt if it has all.
std::optional<std::string> missing_layers(const MeshRun& run, const MeasuredLayers& measured);

/// Writes measured times and bytes into `layers` (an embedding, kPiecesOfLayer for each transformer
/// layer of the run, a head) and keeps their collectives. Errors: ConfigError if the file lacks a
/// layer, or is of another model.
void take_measured_layers(Layers& layers, const MeshRun& run, const MeasuredLayers& measured);

/// "of a microbatch's 34 layers 30 as measured (layers.csv), 4 interpolated between measured ones".
std::string coverage_text(const MeshRun& run, const MeasuredLayers& measured);

}  // namespace pfeife
