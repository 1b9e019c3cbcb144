// The door through which files are read: regular files only, opened without waiting for anything,
// and one wording of what the system refuses.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "planner/ir/basics/units.h"

namespace pfeife {

/// A file that is open for reading. Errors of all members: ConfigError with the file's name, the
/// system's reason and a remedy.
class OpenFile {
 public:
  /// Waits for nothing: not for the other end of a pipe, nor for what the kernel may say one day.
  explicit OpenFile(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Bytes size() const { return size_; }
  /// The next bytes; none at the end.
  std::string_view next();
  /// `count` bytes from `offset` on; fewer where the file ends before.
  std::string at(std::uint64_t offset, std::size_t count) const;
  /// For what takes an open file of the system, while this lives.
  int descriptor() const { return file_; }

 private:
  [[noreturn]] void fail(int code) const;

  std::string name_;
  int file_;
  Bytes size_{0};
  std::vector<char> piece_;
};

/// Whether it is a folder, as far as the system says.
bool is_folder(const std::filesystem::path& path);

/// What lies in a folder, sorted. ConfigError if it cannot be listed.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace pfeife
