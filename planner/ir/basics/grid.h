// Text in columns for a terminal: numbers aligned at the point, colours where they are wanted.
#pragma once

#include <string>
#include <vector>

namespace pfeife {

enum class Look { Plain, Chosen, DoesNotFit, FarFromBound };
/// The text between the terminal's codes of the look (bold, red, yellow); `colour` false: the text.
std::string painted(const std::string& text, Look look, bool colour);

struct GridCell {
  std::string text;
  Look look = Look::Plain;
};

struct GridColumn {
  std::string head;
  bool number = true;    ///< aligned at the point, to the right; else to the left
  std::size_t most = 0;  ///< characters it may have; longer texts end in ".."; 0 = any number
};

/// A row with fewer cells than columns ends early; its last cell may be as long as it likes, and
/// widens no column.
struct GridRow {
  std::vector<GridCell> cells;
  Look look = Look::Plain;  ///< of cells that have none of their own
};

/// Lines of text, the head first, each ending in a newline and none in a blank. ASCII in, ASCII
/// out.
std::string grid_text(const std::vector<GridColumn>& columns, const std::vector<GridRow>& rows,
                      bool colour);
/// Texts in columns, the first row the head. The first column is flush left; so are the others, or
/// they are numbers.
std::string plain_grid(const std::vector<std::vector<std::string>>& rows, bool numbers);
/// Characters of the longest line.
std::size_t grid_width(const std::vector<GridColumn>& columns, const std::vector<GridRow>& rows);

/// The text or its beginning and "..".
std::string clipped(const std::string& text, std::size_t most);
/// Words in lines of at most `width` characters where they allow it, the first begun with `first`,
/// the others with `rest`.
std::string wrapped(const std::string& words, std::size_t width, const std::string& first = "",
                    const std::string& rest = "");

}  // namespace pfeife
