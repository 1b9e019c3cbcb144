#include "planner/ir/result/priced.h"

#include <algorithm>
#include <functional>

namespace pfeife {

Bytes largest_peak(const Priced& plan) {
  return plan.peak_memory.empty() ? Bytes{0} : *std::ranges::max_element(plan.peak_memory);
}

double fullness(const std::vector<Bytes>& peak_memory, const std::vector<Bytes>& memory_limit) {
  double most = 0;
  for (std::size_t r = 0; r < peak_memory.size(); ++r)
    most = std::max(most, static_cast<double>(peak_memory[r].value) /
                              static_cast<double>(std::max(memory_limit[r], Bytes{1}).value));
  return most;
}

bool fits(const std::vector<Bytes>& peak_memory, const std::vector<Bytes>& memory_limit) {
  return std::ranges::equal(peak_memory, memory_limit, std::less_equal{});
}

}  // namespace pfeife
