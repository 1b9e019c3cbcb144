// What standard output is shown on.
#pragma once

#include <cstddef>

namespace pfeife {

/// Characters of a line: the terminal's, else COLUMNS, else 80; at least 40.
std::size_t output_width();
/// A terminal that shows colours, and nobody who has set NO_COLOR to anything (no-color.org).
bool output_has_colours();
/// Somebody sees standard output as it comes.
bool output_is_terminal();

/// Characters of a line of standard error, 80 if it is no terminal.
std::size_t error_width();

}  // namespace pfeife
