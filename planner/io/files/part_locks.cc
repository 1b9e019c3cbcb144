#include "planner/io/files/part_locks.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr const char* kFile = ".pfeife-locks";

/// A lock of `length` bytes from `begin` on; 0 = all. It belongs to the open file, so that a child
/// process keeps it, too.
bool lock(int file, std::int64_t begin, std::int64_t length, bool wait) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = length;
  int result = -1;
  do result = fcntl(file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, bool exclusive,
                       const std::string& taken)
    : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) return;
  if (flock(descriptor_, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return;
  close(descriptor_);
  throw ConfigError({folder.string(), 0, 0}, taken);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

PartLocks::PartLocks(const std::filesystem::path& folder, std::vector<std::int64_t> parts,
                     const std::function<void()>& waits)
    : file_(folder / kFile) {
  if (parts.empty()) return;
  std::ranges::sort(parts);
  do {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  } while (descriptor_ >= 0 && !lock_all(parts, waits));
}

bool PartLocks::lock_all(const std::vector<std::int64_t>& parts,
                         const std::function<void()>& waits) {
  for (const std::int64_t part : parts) {
    if (lock(descriptor_, part, 1, false)) continue;
    if (errno != EAGAIN && errno != EACCES) return true;  // no locks here
    if (!waited_) waits();
    waited_ = true;
    lock(descriptor_, part, 1, true);
  }
  struct stat found {};
  return fstat(descriptor_, &found) != 0 || found.st_nlink > 0;
}

PartLocks::~PartLocks() {
  if (descriptor_ < 0) return;
  if (lock(descriptor_, 0, 0, false)) unlink(file_.c_str());  // nobody else holds any
  close(descriptor_);
}

}  // namespace pfeife
