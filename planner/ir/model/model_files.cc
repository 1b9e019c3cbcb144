#include "planner/ir/model/model_files.h"

namespace pfeife {

std::string to_string(ModelFormat format) {
  switch (format) {
    case ModelFormat::Pt2:
      return "pt2";
    case ModelFormat::Table:
      return "table";
    case ModelFormat::PipeDream:
      return "pipedream";
    case ModelFormat::Piper:
      return "piper";
    case ModelFormat::Mesh:
      return "mesh";
  }
  return "";
}

}  // namespace pfeife
