#pragma once
#include <algorithm>
#include <vector>

namespace pfeife {

/// The median of at least one value.
inline double middle(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace pfeife
