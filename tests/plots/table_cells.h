// HTML tables as text, for tests.
#pragma once

#include "tests/plots/xml.h"

namespace pfeife {

inline std::string all_text(const XmlElement& element) {
  std::string text = element.text;
  for (const XmlElement& child : element.children) text += all_text(child);
  return text;
}

/// [row][column] of a table, its heads first.
inline std::vector<std::vector<std::string>> cells(const std::string& table) {
  const XmlElement root = parse_xml(table);
  std::vector<std::vector<std::string>> rows;
  for (const XmlElement* row : by_name(root, "tr")) {
    rows.emplace_back();
    for (const XmlElement& cell : row->children) rows.back().push_back(all_text(cell));
  }
  return rows;
}

}  // namespace pfeife
