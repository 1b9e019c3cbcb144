#include "planner/ir/basics/decimals.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace pfeife {

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "–";
  std::int64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const std::int64_t scaled = std::llround(value * static_cast<double>(scale));
  const std::int64_t size = scaled < 0 ? -scaled : scaled;
  std::string text = (scaled < 0 ? "-" : "") + std::to_string(size / scale);
  if (decimals == 0) return text;
  const std::string rest = std::to_string(size % scale);
  return text + "." + std::string(static_cast<std::size_t>(decimals) - rest.size(), '0') + rest;
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace pfeife
