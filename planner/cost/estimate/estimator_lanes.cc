// The batch form of the estimator: sixteen duration vectors side by side in SIMD lanes.
// Doubles hold integer nanoseconds exactly below 2^53 and, unlike 64-bit integers, have a maximum
// in AVX2. The compiler makes one clone a CPU generation from plain loops (target_clones), so the
// file is built without -march.
#include <algorithm>
#include <vector>

#include "planner/cost/estimate/clones.h"
#include "planner/cost/estimate/estimator.h"
#include "planner/ir/basics/error.h"

namespace pfeife {

namespace {
constexpr std::size_t kLanes = CompiledGraph::kLanes;

template <class Instruction>
inline void step(const Instruction& at, const double* duration, double* ends, double* end,
                 double* longest) {
  const double* before = ends + at.before * kLanes;
  const double* value = ends + at.value * kLanes;
  const double* delay = duration + at.delay * kLanes;
  const double* work = duration + at.work * kLanes;
  double done[kLanes];
  for (std::size_t k = 0; k < kLanes; ++k) {
    const double arrives = value[k] + delay[k];
    done[k] = (before[k] > arrives ? before[k] : arrives) + work[k];
  }
  for (std::size_t k = 0; k < kLanes; ++k) end[k] = done[k];
  for (std::size_t k = 0; k < kLanes; ++k) longest[k] = longest[k] > done[k] ? longest[k] : done[k];
}
}  // namespace

template <class Instruction>
PFEIFE_CLONES static void run_lanes(const Instruction* program, std::size_t count,
                                    const double* duration, double* ends, double* longest) {
  for (std::size_t k = 0; k < kLanes; ++k) ends[k] = longest[k] = 0;
  for (std::size_t i = 0; i < count; ++i)
    step(program[i], duration, ends, ends + (i + 1) * kLanes, longest);
}

void CompiledGraph::makespans(std::span<const double> durations, std::size_t count,
                              std::span<double> out) const {
  PFEIFE_CHECK(durations.size() == slots_ * count && out.size() >= count);
  std::vector<double> lanes((slots_ + 1) * kLanes, 0.0), ends((program_.size() + 1) * kLanes);
  double longest[kLanes];
  for (std::size_t first = 0; first < count; first += kLanes) {
    const std::size_t used = std::min(kLanes, count - first);
    for (std::size_t slot = 0; slot < slots_; ++slot)
      std::copy_n(durations.begin() + static_cast<std::ptrdiff_t>(slot * count + first), used,
                  lanes.begin() + static_cast<std::ptrdiff_t>(slot * kLanes));
    run_lanes(program_.data(), program_.size(), lanes.data(), ends.data(), longest);
    std::copy_n(longest, used, out.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

}  // namespace pfeife
