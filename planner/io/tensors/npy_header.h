// The header of a .npy file: numpy's format for one array (numpy.lib.format, versions 1 to 3).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "planner/ir/model/graph.h"

namespace pfeife {

struct NpyHeader {
  DType dtype = DType::Float32;
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0;  ///< of the elements in the file, row-major, little endian
  std::uint64_t bytes = 0;
  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// ConfigError if the file is no .npy file, has elements of a type that no tensor has, is stored
/// column by column or big endian, or is shorter than its shape needs; says what to do in numpy.
NpyHeader read_npy_header(const std::filesystem::path& file);

}  // namespace pfeife
