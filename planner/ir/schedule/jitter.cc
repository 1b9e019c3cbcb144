#include "planner/ir/schedule/jitter.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators": the output function
/// of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

/// e^x for |x| below some tens, by its series after halving the argument; only basic operations, so
/// the same everywhere.
double exponential(double x) {
  int halvings = 0;
  for (; x > 0.25 || x < -0.25; x /= 2) ++halvings;
  double sum = 1;
  for (int n = 14; n >= 1; --n) sum = 1 + x / n * sum;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

/// Natural logarithm of x >= 1, by Newton's iteration on exponential().
double logarithm(double x) {
  double y = x - 1;
  for (int i = 0; i < 40; ++i) {
    const double e = exponential(y);
    y += 2 * (x - e) / (x + e);
  }
  return y;
}

/// Sum of twelve uniform variates in [0, 1), less 6: mean 0, variance 1.
double nearly_normal(std::uint64_t state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(mix(state += kGolden) >> 11) * 0x1p-53;
  return sum;
}

}  // namespace

LogNormal::LogNormal(double cv) {
  PFEIFE_CHECK(cv >= 0 && cv <= 1, "coefficient of variation ", cv);
  if (cv <= 0) return;
  sigma_ = std::sqrt(logarithm(1 + cv * cv));  // the square root is exact by IEEE 754
  // E[exp(sigma (u - 1/2))] = 2 sinh(sigma / 2) / sigma for uniform u, to the twelfth power.
  const double half = exponential(sigma_ / 2);
  const double factor_mean = (half - 1 / half) / sigma_;
  for (int i = 0; i < 12; ++i) mean_ *= factor_mean;
}

double LogNormal::draw(std::uint64_t state) const {
  if (sigma_ <= 0) return 1;
  return exponential(sigma_ * nearly_normal(state)) / mean_;
}

JitterSource::JitterSource(const Jitter& jitter, std::uint64_t repetition)
    : key_(mix(mix(jitter.seed + kGolden) ^ (repetition * kGolden + 1))),
      own_(jitter.cv),
      common_(LogNormal(jitter.drift).draw(mix(key_))),
      varies_(jitter.varies()) {}

double JitterSource::factor(std::uint64_t task) const {
  return own_.draw(key_ ^ mix(task + kGolden));
}

Nanoseconds JitterSource::vary(Nanoseconds time, std::uint64_t task, TaskKind kind) const {
  if (!varies_ || time == Nanoseconds{0}) return time;
  double factors = 1;
  if (kind == TaskKind::Compute || kind == TaskKind::Transfer) factors *= factor(task);
  if (kind == TaskKind::Compute || kind == TaskKind::Optimizer) factors *= common_;
  return Nanoseconds{std::llround(static_cast<double>(time.count()) * factors)};
}

Nanoseconds varying_time(const Task& task, Nanoseconds time, const Placement& placement,
                         const Cluster& cluster) {
  if (task.kind == TaskKind::Compute || task.kind == TaskKind::Optimizer) return time;
  if (task.kind != TaskKind::Transfer) return Nanoseconds{0};
  const Path& path = cluster.path(placement.device(task.rank), placement.device(task.peer));
  return time - std::min(std::max(path.latency, Nanoseconds{1}), time);
}

Nanoseconds quantile(std::vector<Nanoseconds> times, double p) {
  PFEIFE_CHECK(!times.empty(), "a quantile of nothing");
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(times.size())));
  const auto at = times.begin() +
                  static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(rank, 1, times.size()) - 1);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

}  // namespace pfeife
