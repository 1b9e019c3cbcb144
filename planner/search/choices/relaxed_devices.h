// A problem that is no harder than a given one in any order of its devices.
#pragma once

#include "planner/search/search.h"

namespace pfeife {

/// A problem whose every plan is at most as slow, and fits if it does, as the same plan of
/// `problem` under any order of its devices: its ranks have devices of their own, beside the given
/// ones, of which each does every layer as fast as the fastest does, every link is the best one,
/// every limit the largest.
class RelaxedDevices {
 public:
  explicit RelaxedDevices(const Problem& problem);
  /// Refers to this.
  Problem problem() const;
  /// A certificate of the given devices, in any order, or of problem() (`relaxed`) with the figures
  /// of both, the given ones first.
  Certificate beside_each_other(Certificate certificate, bool relaxed) const;

 private:
  std::size_t fastest_kind();
  Problem given_;
  Layers layers_;
  Cluster cluster_;
};

}  // namespace pfeife
