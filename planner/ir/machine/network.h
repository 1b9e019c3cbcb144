// Equal hosts of equal devices, any number of them: what collectives of many devices need to know.
// A Cluster has a path for every pair; this has two levels, within a host and between hosts. A
// domain of several hosts that one switch joins (NVL72) counts as one host.
//   const Network hosts{.name = "dgx", .devices_per_host = 8};
#pragma once

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

struct Network {
  std::string name;
  DeviceKind device;
  std::int64_t devices_per_host = 1;  ///< of its domain, where one switch joins several hosts
  std::int64_t host_of_domain =
      0;                        ///< devices of a host, where the domain has several; 0 = it has one
  BytesPerSecond port;          ///< out of a device to another one of its host, and into it
  Nanoseconds port_latency{0};  ///< of one message
  BytesPerSecond nic;           ///< a device's share of its host's way out; 0 = there is none
  Nanoseconds nic_latency{0};   ///< of one message
  // Within a host; ranks increase. Empty: half of an all-reduce's time, and that by the port; of
  // all-to-alls by the port.
  std::vector<CollectiveTable> all_reduce, all_gather, reduce_scatter, all_to_all;
  /// A model's layers as measured on `device`, in place of the roofline; empty = by the roofline.
  MeasuredLayers measured_layers;
  std::vector<std::string> notes;  ///< provenance
  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace pfeife
