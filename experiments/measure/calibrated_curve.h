// Efficiency curves from products that a profiler saw, as a cluster file has them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "planner/io/traces/products.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {

/// What the products of a precision say. Even steps make the curve, odd ones judge it.
struct CalibratedCurve {
  EfficiencyCurve curve;
  std::size_t products = 0, steps = 0;  ///< that made it
  std::size_t held_out = 0;             ///< steps
  double before = 0, after = 0;         ///< predicted / measured - 1 of all products held out
};

/// A point for every half octave of work: what products of about that size reach together, less
/// `kind`'s kernel_overhead each. `precision` is a key of kind.peak. None without a product in an
/// even and one in an odd step.
std::optional<CalibratedCurve> calibrated_curve(std::span<const ObservedProduct> products,
                                                const std::string& precision,
                                                const DeviceKind& kind);

}  // namespace pfeife
