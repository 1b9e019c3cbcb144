// Simple cuts: those that make the slowest stage as fast as possible (exact, by dynamic
// programming), and those at equal shares of a sum.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/schedule/schedule.h"

namespace pfeife {

/// Load of layers [begin, end) as stage `stage`; must not fall when the range grows. nullopt = not
/// allowed.
using StageLoad =
    std::function<std::optional<double>(std::size_t stage, std::size_t begin, std::size_t end)>;

/// The legal partition of `layers` into `stages` non-empty stages with the smallest largest load.
/// Among equally good ones the first cut is the smallest, and the cuts behind it are the best for
/// what it leaves. nullopt if there is none. O(stages x layers^2), but few calls of `load`.
std::optional<Partition> min_max_partition(const Layers& layers, std::size_t stages,
                                           const StageLoad& load);

/// min_max_partition by forward plus backward time of each stage on the device kind it is placed
/// on: "equal-time cuts".
std::optional<Partition> equal_time_cuts(const Layers& layers, const Placement& placement,
                                         const Cluster& cluster);

/// Cuts where the next equal share of the sum of `load` (of a layer) is reached, moved to the next
/// legal place. nullopt if that leaves too few.
std::optional<Partition> cuts_by_share(const Layers& layers, std::size_t stages,
                                       const std::function<double(std::size_t layer)>& load);

/// Sums over ranges of layers, by device kind, in constant time.
class LayerSums {
 public:
  LayerSums(const Layers& layers, const Cluster& cluster);
  /// Forward + backward of layers [begin, end) on a device kind, ns.
  std::int64_t time(std::size_t kind, std::size_t begin, std::size_t end) const {
    return time_[kind][end] - time_[kind][begin];
  }

 private:
  std::vector<std::vector<std::int64_t>> time_;  // [kind][layer] prefix sums
};

}  // namespace pfeife
