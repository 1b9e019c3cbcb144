#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/measure/calibrated_parts.h"

namespace pfeife {
namespace {

constexpr double kLeastFraction = 1e-6, kMostFraction = 1.5;  // what a cluster file may have

struct Bucket {
  double work = 0, seconds = 0, log_work = 0, count = 0;
};

/// Without the overhead, of which an operator so short has none.
double seconds_of_work(Nanoseconds time, Nanoseconds overhead) {
  return seconds(std::max(time - overhead, time / 10));
}

EfficiencyCurve curve_of(std::span<const ObservedProduct> products, FlopsPerSecond peak,
                         Nanoseconds overhead) {
  std::map<long, Bucket> buckets;
  for (const ObservedProduct& product : products) {
    Bucket& bucket = buckets[std::lround(2 * std::log2(product.work.value))];
    bucket.work += product.work.value;
    bucket.seconds += seconds_of_work(product.time, overhead);
    bucket.log_work += std::log(product.work.value);
    ++bucket.count;
  }
  EfficiencyCurve curve;
  for (const auto& [size, bucket] : buckets)
    curve.points.push_back(
        {Flops{std::round(std::exp(bucket.log_work / bucket.count))},
         std::clamp(bucket.work / bucket.seconds / peak.value, kLeastFraction, kMostFraction)});
  return curve;
}

double seconds_of(const ObservedProduct& product, const EfficiencyCurve& curve, FlopsPerSecond peak,
                  Nanoseconds overhead) {
  return product.work.value / (peak.value * curve.at(product.work)) + seconds(overhead);
}

double error_of(std::span<const ObservedProduct> products, const EfficiencyCurve& curve,
                FlopsPerSecond peak, Nanoseconds overhead) {
  double predicted = 0, measured = 0;
  for (const ObservedProduct& product : products) {
    predicted += seconds_of(product, curve, peak, overhead);
    measured += seconds(product.time);
  }
  return predicted / measured - 1;
}

}  // namespace

std::optional<CalibratedCurve> calibrated_curve(std::span<const ObservedProduct> products,
                                                const std::string& precision,
                                                const DeviceKind& kind) {
  std::vector<ObservedProduct> fit, held_out;
  std::set<std::size_t> steps, other_steps;
  for (const ObservedProduct& product : products) {
    (product.step % 2 == 0 ? fit : held_out).push_back(product);
    (product.step % 2 == 0 ? steps : other_steps).insert(product.step);
  }
  if (fit.empty() || held_out.empty()) return std::nullopt;
  const FlopsPerSecond peak = kind.peak_of(precision);
  CalibratedCurve found{.curve = curve_of(fit, peak, kind.operator_time()),
                        .products = fit.size(),
                        .steps = steps.size(),
                        .held_out = other_steps.size()};
  EfficiencyCurve known{{{Flops{1}, 1}}};
  if (const auto listed = kind.gemm_efficiency.find(precision);
      listed != kind.gemm_efficiency.end())
    known = listed->second;
  found.before = error_of(held_out, known, peak, kind.operator_time());
  found.after = error_of(held_out, found.curve, peak, kind.operator_time());
  return found;
}

}  // namespace pfeife
