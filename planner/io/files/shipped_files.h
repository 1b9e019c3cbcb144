// Files that come with Pfeife, found by their names: "h100_sxm_hosts", "llama3_8b".
//
// They lie in configs/ where a program starts, in ../share/pfeife/configs beside the program that
// is installed, beside the program itself in a wheel, and in the folder that PFEIFE_CONFIGS names;
// the first that has a file of the name gives it.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pfeife {

/// A folder of configs/, and how its files end.
struct ShippedFolder {
  const char* name;
  const char* extension;
};
inline constexpr ShippedFolder kShippedModels[] = {
    {"architectures", ".yaml"}, {"architectures", ".json"}, {"models", ".pt2"}, {"tables", ".csv"}};
inline constexpr ShippedFolder kShippedClusters[] = {{"clusters", ".yaml"}};

/// The file of that name, with or without its ending; nothing for paths, and where there is none.
std::optional<std::filesystem::path> shipped_file(const std::string& name,
                                                  std::span<const ShippedFolder> folders);
/// The names of all that are found, sorted, without endings.
std::vector<std::string> shipped_names(std::span<const ShippedFolder> folders);

}  // namespace pfeife
