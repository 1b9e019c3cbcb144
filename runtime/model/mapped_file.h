// A part of a file as a tensor of bytes, read as it is touched.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/device/aten.h"

namespace pfeife {

/// Maps [offset, offset + bytes) of the file. Writing into the tensor leaves the file alone.
/// Errors: ConfigError if it cannot be opened, RuntimeFault if it cannot be mapped.
at::Tensor map_file(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t bytes);

/// The same as a tensor of the given type and row-major shape; `offset` may be anywhere.
at::Tensor map_tensor(const std::filesystem::path& path, std::uint64_t offset, c10::ScalarType type,
                      at::IntArrayRef sizes);

}  // namespace pfeife
