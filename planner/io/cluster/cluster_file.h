// The parts of a cluster file; each is in a source of its name.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/io/files/fields.h"
#include "planner/io/files/yaml.h"
#include "planner/ir/basics/ids.h"
#include "planner/ir/machine/cluster.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

// cluster.yaml as it is written: devices, links and routes, before every pair of devices has its
// path. Read and written by lists of fields; a written file reads as the same
// value. configs/clusters/README.md explains the keys.

inline constexpr std::size_t kNoGroup = ~std::size_t{0};

/// The group of every device, kNoGroup for those in none.
using Groups = std::vector<std::size_t>;

/// An entry of `devices`.
struct DeviceCount {
  std::size_t kind = 0;  ///< index into ClusterFile::kinds
  std::size_t count = 1;
  friend bool operator==(const DeviceCount&, const DeviceCount&) = default;
};

/// An entry of `links`.
struct LinkEntry {
  enum class Shape {
    Pair,    ///< joins two devices directly
    Device,  ///< every device has its own way in and out, e.g. a port or a slot
    Group,  ///< every group has one way in and out, crossed only between groups, e.g. a root or NIC
  };
  std::string name;
  Shape shape = Shape::Device;
  std::set<std::pair<std::size_t, std::size_t>> pairs;  ///< (smaller, larger)
  Groups groups;                                        ///< of a Group; of a Device within groups
  BandwidthCurve up, down;  ///< out of a device or group, into it; a -> b, b -> a of a Pair
  bool half_duplex = false;
  std::optional<Nanoseconds> latency;
  friend bool operator==(const LinkEntry&, const LinkEntry&) = default;
};

/// An entry of `routes`.
struct RouteEntry {
  std::vector<std::size_t> over;  ///< indices into ClusterFile::links
  std::optional<Nanoseconds> latency;
  friend bool operator==(const RouteEntry&, const RouteEntry&) = default;
};

struct ClusterFile {
  std::string name;
  std::vector<std::string> notes;
  std::vector<DeviceKind> kinds;
  std::vector<DeviceCount> devices;
  std::optional<std::size_t> devices_per_node;
  std::optional<Bytes> host_memory;
  std::vector<LinkEntry> links;
  std::vector<RouteEntry> routes;
  std::optional<std::vector<std::size_t>> rings;  ///< indices into `links`
  std::vector<NetworkLevel> domains;              ///< beyond the devices; see read_network()
  std::optional<NetworkLevel> between_hosts;      ///< of any number of devices
  std::vector<CollectiveTable> all_reduce, all_gather, reduce_scatter, all_to_all;

  std::size_t device_count() const;
  friend bool operator==(const ClusterFile&, const ClusterFile&) = default;
};

/// The keys at the top, and those of the maps below. The entries of a list refer to what stands
/// before them in `file`.
const FieldList<ClusterFile>& cluster_fields();
const FieldList<DeviceKind>& device_kind_fields();
const std::vector<std::string>& known_precisions();  ///< keys of DeviceKind::peak
FieldList<DeviceCount> device_fields(const ClusterFile& file);
FieldList<LinkEntry> link_fields(const ClusterFile& file);
FieldList<RouteEntry> route_fields(const ClusterFile& file);

/// Errors: ConfigError with the place; a link that no route uses is one.
ClusterFile read_cluster_file(const YamlNode& root);
std::string cluster_text(const ClusterFile& file);

/// Reads `precision,pass,m,n,k,us` with `operator` and `groups` if they are there: a row a shape.
/// Errors: ConfigError with the place, also for two rows of one shape.
MeasuredProducts read_measured_products(const std::filesystem::path& file);
/// That table without times, as measure_device.py takes it.
std::string products_text(const std::vector<ProductUse>& uses);

/// Reads an entry of `links`.
LinkEntry read_link(const YamlNode& node, const ClusterFile& file);
/// A way in and out of each of so many devices, to all others.
LinkEntry device_link(const std::string& name, BytesPerSecond rate, std::size_t devices);

// The links and routes of cluster.yaml, expanded to directed links and one path for every ordered
// pair of devices.

/// The cluster of a file, `root` for messages; without `file` and `digest`. A path is the first
/// route that connects the two devices; its bandwidth is the narrowest of its links at each size.
/// Errors: ConfigError with the place for two devices without a path.
Cluster resolved(const ClusterFile& file, const YamlNode& root);

// The device of each rank, as plans and experiments write it: [0, 1, 3].

/// Errors: ConfigError if a device is there twice: it has the memory and the time of one rank.
std::vector<DeviceId> device_list(const YamlNode& node);

}  // namespace pfeife
