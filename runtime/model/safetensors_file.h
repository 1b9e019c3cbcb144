// Tensors by name in one safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "planner/io/tensors/safetensors.h"
#include "runtime/device/aten.h"

namespace pfeife {

/// Maps [offset, offset + bytes) of the file. Writing into the tensor leaves the file alone.
/// Errors: ConfigError if it cannot be opened, RuntimeFault if it cannot be mapped.
at::Tensor map_file(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t bytes);

/// The same as a tensor of the given type and row-major shape; `offset` may be anywhere.
at::Tensor map_tensor(const std::filesystem::path& path, std::uint64_t offset, c10::ScalarType type,
                      at::IntArrayRef sizes);

/// Writes the tensors (any device and strides) and returns once the disk has them. RuntimeFault
/// with the system's reason and a remedy, which names the `option` of the command line that chose
/// the folder.
void write_safetensors(const std::filesystem::path& file,
                       const std::map<std::string, at::Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata, std::string_view option);

/// A file to read from; nothing but its header is read before it is asked for.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path file);
  const SafetensorsHeader& header() const { return header_; }
  /// Mapped: valid as long as it is held, the file left alone when it is written to.
  at::Tensor tensor(const SafetensorsEntry& entry) const;

 private:
  std::filesystem::path file_;
  SafetensorsHeader header_;
};

/// Waits until the disk has the file or the folder's list of names.
void flush_to_disk(const std::filesystem::path& path, std::string_view option);

}  // namespace pfeife
