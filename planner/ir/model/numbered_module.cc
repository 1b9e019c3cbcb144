#include "planner/ir/model/numbered_module.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace pfeife {

std::string numbered_module(const std::string& path) {
  const auto is_number = [](std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
  };
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (is_number(std::string_view(path).substr(begin, end - begin))) return path.substr(0, end);
    begin = end + 1;
  }
  return "";
}

std::optional<ModuleNumber> module_number(const std::string& path) {
  const std::string module = numbered_module(path);
  if (module.empty()) return std::nullopt;
  const std::size_t dot = module.rfind('.');
  const std::size_t begin = dot == std::string::npos ? 0 : dot + 1;
  ModuleNumber found{dot == std::string::npos ? "" : module.substr(0, dot)};
  const auto read =
      std::from_chars(module.data() + begin, module.data() + module.size(), found.number);
  if (read.ec != std::errc()) return std::nullopt;
  return found;
}

}  // namespace pfeife
