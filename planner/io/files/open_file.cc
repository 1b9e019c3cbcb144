#include "planner/io/files/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

std::string why_closed(int code) {
  const std::string reason = "cannot be opened for reading: " + std::string(std::strerror(code));
  switch (code) {
    case ENOENT:
    case ENOTDIR:
      return "there is no such file; check the path";
    case ELOOP:
      return reason + "; a link leads back to itself: name the file itself";
    case ENAMETOOLONG:
      return reason + "; check the path";
    case EACCES:
    case EPERM:
      return reason + "; check the permissions of the file and its folders";
    case ENXIO:  // a socket
      return "is not a file but a folder, a device or a pipe";
    case EMFILE:
    case ENFILE:
      return reason + "; raise the limit of open files (ulimit -n)";
    default:
      return reason;
  }
}

}  // namespace

OpenFile::OpenFile(const std::filesystem::path& path)
    : name_(path.string()), file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (file_ < 0) throw ConfigError({name_}, why_closed(errno));
  struct stat status {};
  const int result = fstat(file_, &status);
  if (result == 0 && S_ISREG(status.st_mode)) {
    size_ = Bytes{status.st_size};
    return;
  }
  const int code = errno;
  close(file_);
  if (result != 0) throw ConfigError({name_}, why_closed(code));
  throw ConfigError({name_}, "is not a file but a folder, a device or a pipe");
}

OpenFile::~OpenFile() { close(file_); }

void OpenFile::fail(int code) const {
  throw ConfigError({name_}, "the file cannot be read: " + std::string(std::strerror(code)));
}

std::string_view OpenFile::next() {
  piece_.resize(kPiece);
  ssize_t count = 0;
  do count = read(file_, piece_.data(), piece_.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) fail(errno);
  return {piece_.data(), static_cast<std::size_t>(count)};
}

std::string OpenFile::at(std::uint64_t offset, std::size_t count) const {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(file_, bytes.data() + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> entries;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    entries.push_back(at->path());
  if (error) throw ConfigError({folder.string()}, why_closed(error.value()));
  std::ranges::sort(entries);
  return entries;
}

}  // namespace pfeife
