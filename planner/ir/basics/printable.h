// Text of others in what a terminal shows: no name, path or message moves its cursor.
#pragma once

#include <string>
#include <string_view>

namespace pfeife {

/// The text with control characters written as \x1b, and line ends within double quotes, which are
/// those of names, as \n.
std::string printable(std::string_view text);
/// The same in one line: every line end is written as \n.
std::string printable_line(std::string_view text);

}  // namespace pfeife
