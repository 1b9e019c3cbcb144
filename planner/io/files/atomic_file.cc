#include "planner/io/files/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <sstream>
#include <utility>

#include "planner/io/files/open_file.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::string_view kMark = ".pfeife-tmp-";

/// Letters that nobody can have put a file or a link under.
std::string unguessable() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) number = std::random_device()();
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

/// Writes all of it into an open file; errno tells why that fails.
bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// A file being written; removed unless it was renamed.
class TemporaryFile {
 public:
  TemporaryFile(const std::filesystem::path& target, std::string_view option)
      : target_(target),
        path_(target.parent_path() /
              (std::string(kMark) + unguessable() + "-" + target.filename().string())),
        option_(option),
        descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!done_) unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    if (!write_all(descriptor_, bytes)) fail();
  }

  void rename_to_target() {
    if (close(std::exchange(descriptor_, -1)) != 0) fail();
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail();
    done_ = true;
  }

 private:
  [[noreturn]] void fail() const { throw write_failure(target_, errno, option_); }

  std::filesystem::path target_, path_;
  std::string_view option_;
  int descriptor_;
  bool done_ = false;
};

/// A device or a pipe is no file to be replaced: renaming over /dev/null, root would take it from
/// the whole machine.
void write_into(const std::filesystem::path& path, const FileContent& content,
                std::string_view option) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const auto check = [&](bool written) {
    if (!written) throw write_failure(path, errno, option);
  };
  check(file >= 0);
  try {
    content([&](std::string_view bytes) { check(write_all(file, bytes)); });
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
}

}  // namespace

void make_folder(const std::filesystem::path& folder, std::string_view option) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw write_failure(folder, error.value(), option);
}

void write_file(const std::filesystem::path& path, std::string_view bytes,
                std::string_view option) {
  write_pieces(
      path, [&](const FileSink& write) { write(bytes); }, option);
}

void write_pieces(const std::filesystem::path& path, const FileContent& content,
                  std::string_view option) {
  if (path.has_parent_path()) make_folder(path.parent_path(), option);
  std::error_code error;
  if (std::filesystem::is_other(std::filesystem::status(path, error)))
    return write_into(path, content, option);
  TemporaryFile file(path, option);
  content([&](std::string_view bytes) { file.write(bytes); });
  file.rename_to_target();
}

void remove_file(const std::filesystem::path& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
    throw RuntimeFault("cannot remove " + path.string() + ": " + cause_and_remedy(errno));
}

void remove_leftovers(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(kMark))
      std::filesystem::remove(entry.path(), error);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() != std::filesystem::file_type::not_found;
}

void require_regular_file(const std::filesystem::path& path) { const OpenFile opened(path); }

void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::string_view)>& use) {
  OpenFile file(path);
  for (std::string_view piece; !(piece = file.next()).empty();) use(piece);
}

std::string read_file(const std::filesystem::path& path, Bytes most) {
  OpenFile file(path);
  const auto check = [&](Bytes size) {
    if (size > most)
      throw ConfigError({path.string()},
                        "is larger than the " + to_string(most) + " that such a file may have");
  };
  check(file.size());
  std::string text;
  text.reserve(static_cast<std::size_t>(file.size().value));
  for (std::string_view piece; !(piece = file.next()).empty();) {
    text += piece;
    check(Bytes{static_cast<std::int64_t>(text.size())});  // it may have grown
  }
  return text;
}

}  // namespace pfeife
