// Files that appear whole or not at all, and what a failed write says.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "planner/ir/basics/error.h"
#include "planner/ir/basics/units.h"

namespace pfeife {

// Why the system refuses a write, and what a user can do about it.

/// "No space left on device; free some space, or choose another folder with --out" of ENOSPC.
/// `option`: of the command line, for the folder that is written to.
std::string cause_and_remedy(int code, std::string_view option = "--out");

/// "cannot write PATH: " and that.
RuntimeFault write_failure(const std::filesystem::path& path, int code,
                           std::string_view option = "--out");

// Files that appear whole or not at all.

/// Makes the folder and those on the way. Errors: RuntimeFault with the system's reason and a
/// remedy, which names the `option` of the command line that chose the folder.
void make_folder(const std::filesystem::path& folder, std::string_view option = "--out");

/// Writes `bytes` to `path`: into a temporary file beside it, then renamed over it; straight into
/// it if it is a device or a pipe. Folders on the way are made. Errors: RuntimeFault with the
/// system's reason (a full disk, no permission) and a remedy; then nothing is left behind.
void write_file(const std::filesystem::path& path, std::string_view bytes,
                std::string_view option = "--out");

using FileSink = std::function<void(std::string_view)>;
using FileContent = std::function<void(const FileSink&)>;
/// The same of a content that comes in pieces: `content` gives them to what it is called with.
void write_pieces(const std::filesystem::path& path, const FileContent& content,
                  std::string_view option = "--out");

/// Removes the file if it is there. Errors: RuntimeFault with the system's reason and a remedy,
/// also where there is a folder of that name.
void remove_file(const std::filesystem::path& path);

/// Removes the temporary files that a killed process left in `folder` (not below it).
void remove_leftovers(const std::filesystem::path& folder);

/// Whether something has this name, be it only a link that leads nowhere good: who reads it says
/// so.
bool is_there(const std::filesystem::path& path);

/// ConfigError unless there is a file: a folder, a device or a pipe may never begin, or never end.
void require_regular_file(const std::filesystem::path& path);

/// Passes the content of a file to `use` piece by piece. ConfigError if there is none, if it is a
/// folder, a device or a pipe, and if it cannot be read to its end, or not without waiting.
void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::string_view)>& use);

/// The content of a file; ConfigError as read_pieces(), and if it has more than `most` bytes, which
/// is seen before it is read.
std::string read_file(const std::filesystem::path& path, Bytes most = Bytes{std::int64_t{1} << 30});

}  // namespace pfeife
