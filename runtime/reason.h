// What an exception says to a user.
#pragma once

#include <exception>
#include <string>

namespace pfeife {

/// One line: LibTorch's failures without their stack traces, a lack of memory called so.
std::string reason_of(const std::exception& error);

}  // namespace pfeife
