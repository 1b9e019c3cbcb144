// The parts of a `.pt2` archive (torch.export.save, archive version 0) that describe the graph.
// Weights are not read.
#pragma once

#include <string>

#include "planner/io/files/zip_archive.h"

namespace pfeife {

/// Texts of the entries that hold the program and where its tensors lie.
struct Pt2Texts {
  std::string program;  ///< models/model.json
  std::string weights;  ///< data/weights/model_weights_config.json
  std::string facts;    ///< extra/pfeife.json, what export_models.py knows besides; "" = none
};

/// Reads them after checking that the archive is one of a kind we know. ConfigError otherwise.
Pt2Texts read_pt2_texts(const ZipArchive& archive);

}  // namespace pfeife
