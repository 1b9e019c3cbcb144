#include "plots/figure/html.h"

#include <algorithm>

#include "plots/figure/svg.h"

namespace pfeife::plots {

std::string element(std::string_view name, std::string_view content, std::string_view attributes) {
  std::string out = "<";
  out += name;
  out += attributes;
  out += '>';
  out += content;
  out += "</";
  out += name;
  out += ">\n";
  return out;
}

static std::string cell(const HtmlCell& cell, const HtmlColumn& column) {
  std::string attributes = column.number ? " class=\"number\"" : "";
  if (!cell.value.empty()) attributes += " data-value=\"" + escape(cell.value) + "\"";
  if (!cell.style.empty()) attributes += " style=\"" + escape(cell.style) + "\"";
  if (!cell.hint.empty()) attributes += " title=\"" + escape(cell.hint) + "\"";
  return element("td", cell.content, attributes);
}

std::string table(const std::vector<HtmlColumn>& columns, const std::vector<HtmlRow>& rows) {
  std::vector<bool> shown;
  for (std::size_t c = 0; c < columns.size(); ++c)
    shown.push_back(std::ranges::any_of(rows, [&](const HtmlRow& row) {
      return c < row.cells.size() && !row.cells[c].content.empty();
    }));
  std::string head, body;
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (shown[c])
      head += element("th", escape(columns[c].head),
                      columns[c].number ? " scope=\"col\" class=\"number\"" : " scope=\"col\"");
  for (const HtmlRow& row : rows) {
    std::string cells;
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (shown[c]) cells += cell(c < row.cells.size() ? row.cells[c] : HtmlCell{}, columns[c]);
    body += element("tr", cells, row.marked ? " class=\"best\"" : "");
  }
  const std::string content = element("thead", element("tr", head)) + element("tbody", body);
  return element("div", element("table", content, " class=\"sortable\""), " class=\"wide\"");
}

}  // namespace pfeife::plots
