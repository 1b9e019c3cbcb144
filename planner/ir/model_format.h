//   load_model("vgg16.graph.txt", {.format = ModelFormat::PipeDream});  // what a file may be
#pragma once

#include <string>

namespace pfeife {

enum class ModelFormat { Pt2, Table, PipeDream, Piper };
/// "pt2", "table", "pipedream", "piper".
std::string to_string(ModelFormat format);

}  // namespace pfeife
