// Where the configs stand that the tests of meshes read.
#pragma once

#include <filesystem>

namespace pfeife {

inline const std::filesystem::path kConfigs = std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs";

}  // namespace pfeife
