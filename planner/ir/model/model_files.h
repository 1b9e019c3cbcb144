//   plan(load_model({.file = "vgg16.txt", .format = ModelFormat::PipeDream}), cluster);
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/model/operator_cost.h"

namespace pfeife {

/// Mesh: a transformer on a mesh of devices, folded to one pipeline
/// (planner/io/cluster/mesh_file.h).
enum class ModelFormat { Pt2, Table, PipeDream, Piper, Mesh };
/// "pt2", "table", "pipedream", "piper", "mesh".
std::string to_string(ModelFormat format);

/// The files that a model is made of, and what they do not say of themselves.
struct ModelFiles {
  std::filesystem::path file;
  ModelFormat format = ModelFormat::Pt2;
  Nanoseconds time_unit{0};                         ///< what the times of a Piper profile count
  std::optional<std::filesystem::path> skips = {};  ///< of a layer table
  /// Measured times of an archive's operators; none: times by the roofline.
  std::optional<std::filesystem::path> profile = {};
  std::vector<OperatorCost> operators = {};  ///< what the user says that operators cost
  friend bool operator==(const ModelFiles&, const ModelFiles&) = default;
};

}  // namespace pfeife
