//   load_model({.file = "vgg16.graph.txt", .format = ModelFormat::PipeDream});  // what a file may
//   be
#pragma once

#include <string>

namespace pfeife {

/// Mesh: a transformer on a mesh of devices, folded to one pipeline
/// (planner/io/cluster/mesh_file.h).
enum class ModelFormat { Pt2, Table, PipeDream, Piper, Mesh };
/// "pt2", "table", "pipedream", "piper", "mesh".
std::string to_string(ModelFormat format);

}  // namespace pfeife
