// Where the files of the repository are: where it was built, or where the variable says.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace pfeife {

/// PFEIFE_SOURCE_DIR of the environment, of a bundle that runs elsewhere; else of the build.
inline std::filesystem::path source_folder() {
  const char* given = std::getenv("PFEIFE_SOURCE_DIR");
  return given ? given : PFEIFE_SOURCE_DIR;
}

}  // namespace pfeife
