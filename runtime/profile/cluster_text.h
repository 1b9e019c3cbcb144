// What was measured of this machine, its links and its devices, as a cluster file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/ir/basics/units.h"
#include "planner/ir/machine/cluster.h"
#include "runtime/device/aten.h"
#include "runtime/transport/transport.h"

namespace pfeife {

// How fast messages get from rank to rank over a transport.

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

// What was measured of this machine, as a cluster file.

/// Measures with the kernel threads that are set: products of square matrices by size in fp32 and
/// bf16, of which the best is the peak; copies of 64 MiB, bytes read and written together; what an
/// operator on one number costs with autograd, forward or backward. `memory` is left alone.
DeviceKind measure_device(const std::string& name, at::Device device,
                          const std::function<void(const std::string&)>& progress);

/// cluster.yaml of `devices` equal devices, every two joined as measured. `origin` says where and
/// when. What planner/io/cluster/cluster_reader.h reads.
std::string cluster_text(const std::string& name, const DeviceKind& kind, std::size_t devices,
                         const LinkMeasurement& link, const std::string& origin);

}  // namespace pfeife
