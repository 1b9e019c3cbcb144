#include "planner/schedule_tool/number_text.h"

#include <array>
#include <cstdio>

namespace pfeife::tool {

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
