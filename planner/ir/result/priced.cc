#include "planner/ir/result/priced.h"

#include <algorithm>
#include <functional>

namespace pfeife {

Bytes largest_peak(const Priced& plan) {
  return plan.peak_memory.empty() ? Bytes{0} : *std::ranges::max_element(plan.peak_memory);
}

bool fits(const std::vector<Bytes>& peak_memory, const std::vector<Bytes>& memory_limit) {
  return std::ranges::equal(peak_memory, memory_limit, std::less_equal{});
}

}  // namespace pfeife
