// By which figure plans are compared, and one is chosen.
#pragma once

#include <cstdint>
#include <string>

namespace pfeife {

enum class SelectBy : std::uint8_t { Estimate, Simulate, P95 };
std::string to_string(SelectBy select_by);

}  // namespace pfeife
