// What an exception says to a user.
#pragma once

#include <exception>
#include <string>

namespace pfeife {

/// One line: LibTorch's failures without their stack traces, a lack of memory called so.
std::string reason_of(const std::exception& error);

/// Parts of reasons that only say that another rank is gone: why, somebody else may know.
constexpr const char* kNoFarewell = "ended without a farewell";
constexpr const char* kCannotConnect = "cannot connect to rank ";
/// Whether the reason has one of them.
bool is_consequence(const std::string& reason);

}  // namespace pfeife
