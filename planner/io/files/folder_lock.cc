#include "planner/io/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "planner/ir/basics/error.h"

namespace pfeife {

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

}  // namespace pfeife
