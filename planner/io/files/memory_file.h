// Bytes as a file in memory, under a path that every reader takes.
//   const MemoryFile table("name,forward_ms,...");
//   load_model({.file = table.path(), .format = ModelFormat::Table});
#pragma once

#include <filesystem>
#include <string_view>

namespace pfeife {

class MemoryFile {
 public:
  /// Errors: RuntimeFault if the system has no memory for it.
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// The path holds in this process alone, as long as this lives.
  std::filesystem::path path() const;
  /// Whether the path is that of a file in memory.
  static bool is_one(const std::filesystem::path& path);

 private:
  int file_ = -1;
};

}  // namespace pfeife
