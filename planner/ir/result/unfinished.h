// How a note begins that says where a budget ended a search with something left to try.
#pragma once

#include <string_view>

namespace pfeife {

inline constexpr std::string_view kUnfinished = "unfinished: ";

}  // namespace pfeife
