// The entries `links` and `routes` of cluster.yaml as they are written. Internal to planner/io:
// what becomes of them is in cluster_links.h.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/io/files/yaml_node.h"
#include "planner/ir/machine/cluster.h"

namespace pfeife {

inline constexpr std::size_t kNoGroup = ~std::size_t{0};

/// The group of every device, kNoGroup for those in none.
using Groups = std::vector<std::size_t>;

/// An entry of `links`.
struct LinkEntry {
  enum class Shape {
    Pair,    // joins two devices directly
    Device,  // every device has its own way in and out, e.g. a port or a slot
    Group,   // every group has one way in and out, crossed only between groups, e.g. a root or NIC
  };
  std::string name;
  Shape shape = Shape::Device;
  std::set<std::pair<std::size_t, std::size_t>> pairs;  // (smaller, larger)
  Groups groups;                                        // of a Group; of a Device within groups
  BandwidthCurve up, down;  // out of a device or group, into it; a -> b, b -> a of a Pair
  bool half_duplex = false;
  std::optional<Nanoseconds> latency;
};

/// An entry of `routes`.
struct RouteEntry {
  std::vector<const LinkEntry*> over;  // borrowed from the list of links
  std::optional<Nanoseconds> latency;
  YamlNode node;
};

/// The entries of `links`, with groups of so many devices. Errors: ConfigError.
std::vector<LinkEntry> read_links(const YamlNode& root, std::size_t devices);

/// The entries of `routes` over these links. Errors: ConfigError; a link that no route uses is one.
std::vector<RouteEntry> read_routes(const YamlNode& root, const std::vector<LinkEntry>& links);

}  // namespace pfeife
