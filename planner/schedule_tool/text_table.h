// Text in columns, for the terminal.
#pragma once

#include <string>
#include <vector>

namespace pfeife::tool {

/// Columns as wide as their widest text, two blanks between them, no blanks at the end of a line.
/// The first column is flush left, the others right if `numbers`.
std::string text_table(const std::vector<std::vector<std::string>>& rows, bool numbers);

/// Milliseconds with six digits behind the point, less trailing zeros: "33.25".
std::string ms_text(double ms);
/// "12.3 %".
std::string percent_text(double fraction);

}  // namespace pfeife::tool
