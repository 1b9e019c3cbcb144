#include "planner/ir/result/priced.h"

#include <algorithm>

namespace pfeife {

Bytes largest_peak(const Priced& plan) {
  return plan.peak_memory.empty() ? Bytes{0} : *std::ranges::max_element(plan.peak_memory);
}

}  // namespace pfeife
