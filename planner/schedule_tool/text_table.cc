#include "planner/schedule_tool/text_table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace pfeife::tool {

std::string text_table(const std::vector<std::vector<std::string>>& rows, bool numbers) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string fill(widths[c] - row[c].size(), ' ');
      line += (c > 0 ? "  " : "") + (numbers && c > 0 ? fill + row[c] : row[c] + fill);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string ms_text(double ms) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.6f", ms);
  std::string result = text.data();
  result.erase(result.find_last_not_of('0') + 1);
  if (result.ends_with('.')) result.pop_back();
  return result;
}

std::string percent_text(double fraction) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * fraction);
  return text.data();
}

}  // namespace pfeife::tool
