// One writer at a time in a folder of results; shards, which write different cases, may share it.
#pragma once

#include <filesystem>

namespace pfeife {

/// Holds a lock on the folder while it lives. Where the file system knows no locks, it holds
/// nothing.
class FolderLock {
 public:
  /// Errors: ConfigError if another process has it.
  FolderLock(const std::filesystem::path& folder, bool exclusive);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  int descriptor_ = -1;
};

}  // namespace pfeife
