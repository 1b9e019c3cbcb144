// Sixteen candidates of a Program side by side in SIMD lanes. Doubles hold whole nanoseconds
// exactly below 2^53 and, unlike 64-bit integers, have a maximum in AVX2. The compiler makes one
// clone a CPU generation from plain loops, so the file is built without -march.
#include <algorithm>

#include "planner/cost/clones.h"
#include "planner/search/program.h"

namespace pfeife {

namespace {
constexpr std::size_t kLanes = Program::kLanes;
}

template <class Step>
PFEIFE_CLONES static void run_program(const Step* steps, std::size_t count, const double* d,
                                      double* ranks, double* slots) {
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    double* const rank = ranks + step.rank * kLanes;
    const double* const in = slots + step.in * kLanes;
    double* const out = slots + step.out * kLanes;
    const double* const duration = d + step.duration * kLanes;
    const double* const latency = d + step.latency * kLanes;
    double t[kLanes];
    for (std::size_t k = 0; k < kLanes; ++k)
      t[k] = (rank[k] > in[k] ? rank[k] : in[k]) + duration[k];
    for (std::size_t k = 0; k < kLanes; ++k) rank[k] = t[k];
    for (std::size_t k = 0; k < kLanes; ++k) out[k] = t[k] + latency[k];
  }
}

void Program::makespans(const double* durations, std::vector<double>& scratch, double* out) const {
  scratch.assign((ranks() + slots_) * kLanes, 0.0);
  double* const rank = scratch.data();
  run_program(steps_.data(), steps_.size(), durations, rank, rank + ranks() * kLanes);
  std::fill_n(out, kLanes, 0.0);
  for (std::size_t r = 0; r < ranks(); ++r) {
    double* const end = rank + r * kLanes;
    for (const std::size_t s : stages_of_rank_[r])
      for (std::size_t k = 0; k < kLanes; ++k)
        end[k] += durations[work(Work::Optimizer, s) * kLanes + k];
    for (std::size_t k = 0; k < kLanes; ++k) out[k] = std::max(out[k], end[k]);
  }
}

}  // namespace pfeife
