// Why the system refuses a write, and what a user can do about it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "planner/ir/basics/error.h"

namespace pfeife {

/// "No space left on device; free some space, or choose another folder with --out" of ENOSPC.
/// `option`: of the command line, for the folder that is written to.
std::string cause_and_remedy(int code, std::string_view option = "--out");

/// "cannot write PATH: " and that.
RuntimeFault write_failure(const std::filesystem::path& path, int code,
                           std::string_view option = "--out");

}  // namespace pfeife
