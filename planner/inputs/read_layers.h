// From the files of a model to its layers with costs: the one way there, for those who plan and for
// the judge who computes it all again.
#pragma once

#include <filesystem>
#include <optional>

#include "planner/ir/cluster.h"
#include "planner/ir/layers.h"
#include "planner/ir/model_format.h"
#include "planner/ir/profile.h"

namespace pfeife {

struct ModelFiles {
  std::filesystem::path model;
  ModelFormat format = ModelFormat::Pt2;
  Nanoseconds time_unit{0};                      ///< of a Piper profile
  std::optional<std::filesystem::path> skips;    ///< of a layer table
  std::optional<std::filesystem::path> profile;  ///< of an archive; none: times by the roofline
  std::string order = "captured";                ///< of an archive's nodes
  Precision precision = Precision::Fp32;
  Optimizer optimizer = Optimizer::Adam;
  std::optional<std::int64_t> microbatch_size;  ///< none: the archive's own; 1 for the others
};

/// The layers with the times of every device kind of the cluster. Errors: ConfigError of the file.
Layers read_layers(const ModelFiles& files, const Cluster& cluster);

}  // namespace pfeife
