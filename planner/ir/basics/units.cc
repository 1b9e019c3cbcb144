#include "planner/ir/basics/units.h"

#include <array>
#include <cstdio>

namespace pfeife {

static std::string scaled(double value, const char* unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", value, unit);
  return text.data();
}

std::string to_string(Nanoseconds time) {
  const auto ns = static_cast<double>(time.count());
  const double size = std::abs(ns);
  if (size < 1e3) return std::to_string(time.count()) + " ns";
  if (size < 1e6) return scaled(ns * 1e-3, "us");
  if (size < 1e9) return scaled(ns * 1e-6, "ms");
  return scaled(ns * 1e-9, "s");
}

std::string to_string(Bytes bytes) {
  const auto count = static_cast<double>(bytes.value);
  const double size = std::abs(count);
  if (size < 1024) return std::to_string(bytes.value) + " B";
  if (size < 1024.0 * 1024) return scaled(count / 1024, "KiB");
  if (size < 1024.0 * 1024 * 1024) return scaled(count / (1024.0 * 1024), "MiB");
  return scaled(count / (1024.0 * 1024 * 1024), "GiB");
}

}  // namespace pfeife
