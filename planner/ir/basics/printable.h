// Text of others in what a terminal shows: no name, path or message moves its cursor, or turns the
// direction in which the rest is read.
#pragma once

#include <string>
#include <string_view>

namespace pfeife {

/// The text with control characters and bytes that are no UTF-8 written as \x1b, characters that
/// turn the direction of reading as \u202e, and line ends within quotes, which are those of names,
/// as \n.
std::string printable(std::string_view text);
/// The same in one line: every line end is written as \n.
std::string printable_line(std::string_view text);

}  // namespace pfeife
