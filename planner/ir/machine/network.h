// Equal devices in any number, joined by levels: what collectives of many devices need to know. A
// Cluster has a path for every pair of devices; a Network has a bandwidth and a latency for each
// level. The devices of a level's domain are neighbours in number: a host, an NVL72 rack of several
// hosts, a pod of hosts behind one leaf switch.
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

/// How long a collective among so many devices of a host takes, as measured. Sizes are of the whole
/// message: what is reduced, gathered or scattered, or what a device sends to all.
struct CollectiveTable {
  std::int64_t ranks = 2;
  std::vector<std::pair<Bytes, Nanoseconds>> times;  ///< sizes increase
  friend bool operator==(const CollectiveTable&, const CollectiveTable&) = default;
};

/// Joins the domains of the level inside of it to larger ones.
struct NetworkLevel {
  std::int64_t devices = 0;  ///< of a domain; 0 = any number, of the outermost level alone
  /// A device's, each way, to those devices of its domain that no smaller domain has.
  BytesPerSecond bandwidth;
  Nanoseconds latency{0};  ///< of one message
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

struct Network {
  std::string name;
  DeviceKind device;
  std::int64_t devices_per_host = 1;  ///< divides the domains of every level
  /// The innermost first, at least one. Domains grow; each is a multiple of the one before.
  std::vector<NetworkLevel> levels = {{1}};
  // Within a domain of the innermost level; ranks increase. Empty: half of an all-reduce's time,
  // and that by the bandwidth; of all-to-alls by the bandwidth.
  std::vector<CollectiveTable> all_reduce, all_gather, reduce_scatter, all_to_all;
  /// A model's layers as measured on `device`, in place of the roofline; empty = by the roofline.
  MeasuredLayers measured_layers;
  std::vector<std::string> notes;  ///< provenance

  const NetworkLevel& inner() const { return levels.front(); }
  /// The most devices that are joined.
  std::int64_t reach() const {
    return levels.back().devices == 0 ? std::numeric_limits<std::int64_t>::max()
                                      : levels.back().devices;
  }
  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace pfeife
