// How fast messages get from rank to rank over a transport.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "runtime/transport/transport.h"

namespace pfeife {

/// Time of a message from being handed over to being there, medians.
struct LinkPoint {
  Bytes bytes{0};
  Nanoseconds one_way{0};  ///< alone on the link
  Nanoseconds both{0};     ///< while one of the same size goes the other way
  std::size_t messages = 0;
};

struct LinkMeasurement {
  Nanoseconds latency{0};         ///< of a message of one number
  std::vector<LinkPoint> points;  ///< by size, increasing
  /// Both directions together carry less than one and a half times what one does.
  bool half_duplex() const;
};

/// Measures between ranks 0 and 1; every rank must call it. The result is that of rank 0, which
/// receives: empty elsewhere.
LinkMeasurement measure_link(Transport& transport,
                             const std::function<void(const std::string&)>& progress);

/// bytes / (time - latency).
BytesPerSecond rate(const LinkPoint& point, Nanoseconds time, Nanoseconds latency);

}  // namespace pfeife
