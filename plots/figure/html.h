// Writing HTML as text: elements and tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pfeife::plots {

/// "<name attributes>content</name>\n". `attributes` with a leading blank; `content` is HTML
/// already.
std::string element(std::string_view name, std::string_view content,
                    std::string_view attributes = "");

/// A cell: what it shows, and what it is sorted by if that is something else.
struct HtmlCell {
  std::string content;  ///< HTML
  std::string value;    ///< number to sort by; "" = by what is shown
  std::string style;    ///< CSS declarations; "" = none
  std::string hint;     ///< text shown on hovering
};

struct HtmlColumn {
  std::string head;  ///< text
  bool number = false;
};

struct HtmlRow {
  std::vector<HtmlCell> cells;
  bool marked = false;
};

/// A table whose columns the reader can sort, if scripts are allowed. Columns without any content
/// are left out.
std::string table(const std::vector<HtmlColumn>& columns, const std::vector<HtmlRow>& rows);

}  // namespace pfeife::plots
