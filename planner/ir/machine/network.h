// Identical devices that are joined by levels, for the time of collectives among many of them. A
// Cluster has a path for every pair of devices; a Network has a bandwidth and a latency for each
// level. A domain of a level is a block of consecutively numbered devices: a host, an NVL72 rack of
// several hosts, a pod of hosts behind one leaf switch.
//   const Network dgx{.name = "dgx", .devices_per_host = 8,
//                     .levels = {{8, {450e9}}, {0, {50e9}}}};
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/measured_layers.h"

namespace pfeife {

/// Measured times of one collective among `ranks` devices of a domain of the innermost level. Sizes
/// are of the whole message: what is reduced, gathered or scattered, or what a device sends to all.
struct CollectiveTable {
  std::int64_t ranks = 2;
  std::vector<std::pair<Bytes, Nanoseconds>> times;  ///< sizes increase
  friend bool operator==(const CollectiveTable&, const CollectiveTable&) = default;
};

/// Joins the domains of the next inner level into larger ones.
struct NetworkLevel {
  std::int64_t devices = 0;  ///< in one domain; 0 = any number (the outermost level only)
  /// A device's, in each direction, to devices of its domain that its inner domain lacks.
  BytesPerSecond bandwidth;
  Nanoseconds latency{0};  ///< of one message
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

struct Network {
  std::string name;
  DeviceKind device;
  std::int64_t devices_per_host = 1;  ///< divides the `devices` of every level
  /// The innermost first, at least one. Domains grow; each is a multiple of the one before.
  std::vector<NetworkLevel> levels = {{1}};
  /// For domains of the innermost level; ranks increase. Without tables, gathers and scatters take
  /// half of an all-reduce; all-reduces and all-to-alls follow from bandwidth and latency.
  std::vector<CollectiveTable> all_reduce, all_gather, reduce_scatter, all_to_all;
  /// A model's layers as measured on `device`, in place of the roofline; empty = by the roofline.
  MeasuredLayers measured_layers;
  std::vector<std::string> notes;  ///< provenance

  const NetworkLevel& inner() const { return levels.front(); }
  /// The largest number of devices that are joined; the largest integer if there is no limit.
  std::int64_t reach() const {
    return levels.back().devices == 0 ? std::numeric_limits<std::int64_t>::max()
                                      : levels.back().devices;
  }
  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace pfeife
