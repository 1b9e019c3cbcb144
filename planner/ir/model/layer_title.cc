#include "planner/ir/model/layer_title.h"

namespace pfeife {

std::string layer_title(const Layer& layer) {
  return layer.module_path.empty() ? layer.name : layer.module_path + " (" + layer.name + ")";
}

}  // namespace pfeife
