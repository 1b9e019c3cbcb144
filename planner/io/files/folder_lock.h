// One writer at a time in a folder; those that write different files may share it.
#pragma once

#include <filesystem>
#include <string>

namespace pfeife {

/// Holds a lock on the folder while it lives. Where the file system knows no locks, it holds
/// nothing.
class FolderLock {
 public:
  /// Errors: ConfigError with the message `taken` if another process has it.
  FolderLock(const std::filesystem::path& folder, bool exclusive, const std::string& taken);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace pfeife
