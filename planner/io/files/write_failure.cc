#include <cerrno>
#include <cstring>

#include "planner/io/files/atomic_file.h"

namespace pfeife {
namespace {

std::string remedy(int code, const std::string& another_folder) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or " + another_folder;
    case EISDIR:
    case ENOTEMPTY:
      return "a folder stands where a file belongs: remove or rename it, or " + another_folder;
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f)";
    case EMFILE:
      return "raise the limit of open files (ulimit -n)";
    case EACCES:
    case EROFS:
    case EPERM:
    case ENOTDIR:
    case EEXIST:
    case ENOENT:
    case ELOOP:
    case ENAMETOOLONG:
    case EIO:
      return another_folder;
    default:
      return "";
  }
}

}  // namespace

std::string cause_and_remedy(int code, std::string_view option) {
  const std::string what_to_do = remedy(code, "choose another folder with " + std::string(option));
  return (code == 0 ? "the system does not say why" : std::strerror(code)) +
         (what_to_do.empty() ? "" : "; " + what_to_do);
}

RuntimeFault write_failure(const std::filesystem::path& path, int code, std::string_view option) {
  return RuntimeFault("cannot write " + path.string() + ": " + cause_and_remedy(code, option));
}

}  // namespace pfeife
