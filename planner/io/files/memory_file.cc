#include "planner/io/files/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr const char* kFolder = "/proc/self/fd";

}  // namespace

MemoryFile::MemoryFile(std::string_view bytes) : file_(memfd_create("pfeife", MFD_CLOEXEC)) {
  while (file_ >= 0 && !bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) break;
  }
  if (file_ >= 0 && bytes.empty()) return;
  const std::string reason = strerror(errno);
  if (file_ >= 0) close(file_);
  throw RuntimeFault("no file in memory can be made: " + reason);
}

MemoryFile::~MemoryFile() { close(file_); }

std::filesystem::path MemoryFile::path() const {
  return std::filesystem::path(kFolder) / std::to_string(file_);
}

bool MemoryFile::is_one(const std::filesystem::path& path) { return path.parent_path() == kFolder; }

}  // namespace pfeife
