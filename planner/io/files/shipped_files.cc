#include "planner/io/files/shipped_files.h"

#include <cstdlib>
#include <set>

namespace pfeife {
namespace {

std::vector<std::filesystem::path> places() {
  std::error_code error;
  std::vector<std::filesystem::path> found{"configs"};
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    found.push_back((program.parent_path() / "../share/pfeife/configs").lexically_normal());
    found.push_back(program.parent_path());
  }
  if (const char* const named = std::getenv("PFEIFE_CONFIGS"); named != nullptr && *named != '\0')
    found.emplace_back(named);
  return found;
}

}  // namespace

std::optional<std::filesystem::path> shipped_file(const std::string& name,
                                                  std::span<const ShippedFolder> folders) {
  if (name.empty() || name.find('/') != std::string::npos) return std::nullopt;
  std::error_code error;
  for (const std::filesystem::path& place : places())
    for (const ShippedFolder& folder : folders)
      for (const std::string& file : {name + folder.extension, name})
        if (const auto path = place / folder.name / file;
            path.extension() == folder.extension && std::filesystem::is_regular_file(path, error))
          return path;
  return std::nullopt;
}

std::vector<std::string> shipped_names(std::span<const ShippedFolder> folders) {
  std::set<std::string> names;
  std::error_code error;
  for (const std::filesystem::path& place : places())
    for (const ShippedFolder& folder : folders)
      for (const auto& entry : std::filesystem::directory_iterator(place / folder.name, error))
        if (entry.path().extension() == folder.extension) names.insert(entry.path().stem());
  return {names.begin(), names.end()};
}

}  // namespace pfeife
