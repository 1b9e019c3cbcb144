// Devices and the links between them, resolved: every ordered pair of devices has its path. Not
// modelled: protocols, copies through the host, collectives.
//   Cluster four = uniform_cluster(4, {.memory = 24 * kGiB}, {20e9}, Nanoseconds{5000});
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/ir/basics/ids.h"
#include "planner/ir/basics/units.h"
#include "planner/ir/machine/measured_products.h"
#include "planner/ir/model/profile.h"

namespace pfeife {

/// A rate that depends on size: points (size, rate) in increasing size; between them the time, size
/// over rate, grows linearly; the rate is constant outside. One point = constant.
struct BandwidthCurve {
  struct Point {
    Bytes size;
    BytesPerSecond rate;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;
  BytesPerSecond at(Bytes size) const;
  friend bool operator==(const BandwidthCurve&, const BandwidthCurve&) = default;
};

/// Fraction of the peak that a matrix product of so many operations reaches: points interpolated in
/// log(flops); below the first point proportional to flops^0.35, above the last constant.
struct EfficiencyCurve {
  struct Point {
    Flops work;
    double fraction = 1;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;
  double at(Flops work) const;
  friend bool operator==(const EfficiencyCurve&, const EfficiencyCurve&) = default;
};

/// What a device is; some operators keep other bytes for backward on a CPU than on a GPU.
enum class DeviceType { Gpu, Cpu };

/// A device's way to the memory of its host, which OFFLOAD and RELOAD take.
struct HostLink {
  BytesPerSecond bandwidth;    ///< each way
  bool half_duplex = false;    ///< one way at a time
  std::int64_t shared_by = 1;  ///< devices on one root: each has that part of the bandwidth
  friend bool operator==(const HostLink&, const HostLink&) = default;
};

/// Share of its type's peak that a fused attention kernel reaches, FLOPs that a causal mask hides
/// left out, over sequences of 4,096 and more; below, it falls as products do, by sequence^0.35.
struct AttentionSpeed {
  std::string kernel;  ///< its name, for reports
  double forward = 1, backward = 1;
  double at(double share, double sequence) const;  ///< `share`: forward or backward
  friend bool operator==(const AttentionSpeed&, const AttentionSpeed&) = default;
};

/// Speeds are only for times made by the roofline; who has others may leave them out. They are
/// those published; compute_factor says how much longer each of the roofline's times is.
struct DeviceKind {
  std::string name;
  DeviceType type = DeviceType::Gpu;
  Bytes memory{0};   ///< as the driver reports it
  Bytes reserve{0};  ///< context and communication buffers, not available to the model
  BytesPerSecond memory_bandwidth;  ///< 0 if not given, as peak and gemm_efficiency may be empty
  double memory_efficiency = 0.85;  ///< of memory_bandwidth that element-wise operators reach
  std::map<std::string, FlopsPerSecond> peak;  ///< by "fp32", "tf32", "bf16", "fp16"
  std::map<std::string, EfficiencyCurve>
      gemm_efficiency;  ///< likewise; missing = the nearest listed precision's
  /// Fused attention in 16 bits; without, a part of what products reach (kAttentionShare).
  std::optional<AttentionSpeed> attention = std::nullopt;
  Nanoseconds kernel_overhead{0};     ///< per operator
  Nanoseconds stage_overhead{0};      ///< per F, and per B or I, of a stage
  Nanoseconds iteration_overhead{0};  ///< once a step, with the optimizer
  double compute_factor = 1;
  std::optional<HostLink> host_link = std::nullopt;
  MeasuredProducts measured_products = {};  ///< go before gemm_efficiency and attention

  // What the roofline computes with.
  Nanoseconds operator_time() const;         ///< of an operator, besides its work
  BytesPerSecond element_wise_rate() const;  ///< that element-wise operators reach
  FlopsPerSecond peak_of(const std::string& precision) const;  ///< a key of `peak`
  friend bool operator==(const DeviceKind&, const DeviceKind&) = default;
};

/// A link in one direction (or a half-duplex one, which both directions share).
struct Link {
  std::string name;  ///< unique, e.g. "root0.up"
  BytesPerSecond bandwidth;
  std::int64_t alike = 1;  ///< pipelines that send over it in step, of which the simulator has one
  /// What it has for one of these.
  BytesPerSecond capacity() const { return {bandwidth.value / static_cast<double>(alike)}; }
  friend bool operator==(const Link&, const Link&) = default;
};

/// How bytes get from one device to another.
struct Path {
  std::vector<std::size_t>
      links;  ///< indices into Cluster::links, in order of travel; empty on the same device
  Nanoseconds latency{0};
  BandwidthCurve bandwidth;  ///< of a message alone on the path, latency left out
  friend bool operator==(const Path&, const Path&) = default;
};

struct Cluster {
  std::string name;
  std::string file;    ///< the path that it was read by; "" = it is no file's as it stands
  std::string digest;  ///< SHA-256 of the file's bytes
  std::vector<DeviceKind> kinds;
  std::vector<std::size_t> kind_of_device;  ///< [device] index into kinds
  std::vector<Link> links;
  std::vector<Path> paths;  ///< [from * devices + to]
  /// [device] Links that what its replicas reduce goes over; without, as ring_links() says.
  std::optional<std::vector<std::vector<std::size_t>>> rings = std::nullopt;
  std::vector<std::string> notes;  ///< provenance lines for the report
  /// Memory of a node that plans may offload to; without, there is no limit.
  std::optional<Bytes> host_memory = std::nullopt;
  std::size_t devices_per_node = 0;  ///< that share a host; 0 = all

  std::size_t devices() const { return kind_of_device.size(); }
  const DeviceKind& kind(DeviceId d) const { return kinds[kind_of_device[d.index()]]; }
  const Path& path(DeviceId from, DeviceId to) const {
    return paths[from.index() * devices() + to.index()];
  }
  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// latency + bytes / bandwidth(bytes), rounded once; zero on the same device; a zero-byte message
/// costs the latency.
Nanoseconds transfer_time(const Path& path, Bytes bytes);
/// Ring all-reduce over `devices` as they follow each other (a repeated one counts once): 2 (k-1)
/// steps of bytes / k over the slowest neighbour. Names of devices are of no account.
Nanoseconds all_reduce_time(const Cluster& cluster, const std::vector<DeviceId>& devices,
                            Bytes bytes);

/// Links used by the gradient all-reduce of a device's replicas: the device's `rings`; without
/// them, the links that all paths out of the device share, and those that all paths into it share.
std::vector<std::size_t> ring_links(const Cluster& cluster, DeviceId device);

/// The least bandwidth of these links; 0 if there are no links.
BytesPerSecond narrowest(const Cluster& cluster, const std::vector<std::size_t>& links);

/// Every device `kind`, all pairs joined by their own uncontended full-duplex link: for tests and
/// layer tables.
Cluster uniform_cluster(std::size_t devices, const DeviceKind& kind, BytesPerSecond bandwidth,
                        Nanoseconds latency);

}  // namespace pfeife
