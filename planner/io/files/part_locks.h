// One writer at a time in a folder, or of each part of what it holds, where several processes share
// it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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

/// Holds a lock on each of some parts of a folder while it lives, kept in a file of the folder that
/// the last process removes. Where the file system knows no locks, or the folder cannot be written
/// to, it holds nothing.
class PartLocks {
 public:
  /// Waits for each part in the order of their numbers, so that no two processes wait for each
  /// other. `waits` is called once, before the first that another process has.
  PartLocks(const std::filesystem::path& folder, std::vector<std::int64_t> parts,
            const std::function<void()>& waits);
  PartLocks(const PartLocks&) = delete;
  PartLocks& operator=(const PartLocks&) = delete;
  ~PartLocks();

  /// Whether another process had one of them: what is in the folder may have changed.
  bool waited() const { return waited_; }

 private:
  /// False: the file was removed meanwhile.
  bool lock_all(const std::vector<std::int64_t>& parts, const std::function<void()>& waits);

  std::filesystem::path file_;
  int descriptor_ = -1;
  bool waited_ = false;
};

}  // namespace pfeife
