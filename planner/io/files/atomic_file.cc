#include "planner/io/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "planner/ir/error.h"

namespace pfeife {
namespace {

constexpr std::string_view kMark = ".pfeife-tmp-";

[[noreturn]] void fail(const std::filesystem::path& path, int code) {
  std::string remedy;
  if (code == ENOSPC || code == EDQUOT)
    remedy = "; free some space, or choose another folder with --out";
  if (code == EACCES || code == EROFS || code == EPERM || code == ENOTDIR || code == EEXIST ||
      code == ENOENT)
    remedy = "; choose another folder with --out";
  if (code == EFBIG) remedy = "; raise the limit of file sizes (ulimit -f)";
  throw RuntimeFault("cannot write " + path.string() + ": " + std::strerror(code) + remedy);
}

/// A file being written; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target),
        path_(target.parent_path() /
              (std::string(kMark) + std::to_string(getpid()) + "-" + target.filename().string())),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail(target_, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!done_) unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(target_, errno);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void rename_to_target() {
    if (close(std::exchange(descriptor_, -1)) != 0) fail(target_, errno);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, errno);
    done_ = true;
  }

 private:
  std::filesystem::path target_, path_;
  int descriptor_;
  bool done_ = false;
};

/// A device or a pipe is no file to be replaced: renaming over /dev/null, root would take it from
/// the whole machine.
void write_into(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream << bytes << std::flush;
  if (!stream) fail(path, errno);
}

}  // namespace

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail(folder, error.value());
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  std::error_code error;
  if (std::filesystem::is_other(std::filesystem::status(path, error)))
    return write_into(path, bytes);
  TemporaryFile file(path);
  file.write(bytes);
  file.rename_to_target();
}

void remove_leftovers(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(kMark))
      std::filesystem::remove(entry.path(), error);
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw ConfigError({path.string(), 0, 0}, "there is no such file");
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw ConfigError({path.string(), 0, 0}, "the file cannot be read");
  return text.str();
}

}  // namespace pfeife
