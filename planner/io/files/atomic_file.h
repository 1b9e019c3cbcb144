// Files that appear whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pfeife {

/// Makes the folder and those on the way. Errors: RuntimeFault with the system's reason and a
/// remedy.
void make_folder(const std::filesystem::path& folder);

/// Writes `bytes` to `path`: into a temporary file beside it, then renamed over it; straight into
/// it if it is a device or a pipe. Folders on the way are made. Errors: RuntimeFault with the
/// system's reason (a full disk, no permission); then nothing is left behind.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Removes the temporary files that a killed process left in `folder` (not below it).
void remove_leftovers(const std::filesystem::path& folder);

/// The content of a file; ConfigError if it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace pfeife
