#include <algorithm>
#include <map>

#include "planner/io/cluster/cluster_file.h"

namespace pfeife {
namespace {

/// A directed link on the way from one device to another, before it has its number.
struct Hop {
  const LinkEntry* entry;
  std::string owner;  // "3", "0-1"
  bool up;
};

BytesPerSecond fastest(const BandwidthCurve& curve) {
  BytesPerSecond rate;
  for (const auto& point : curve.points) rate = std::max(rate, point.rate);
  return rate;
}

/// At every size that one of the two lists, the lower of both.
BandwidthCurve narrower(const BandwidthCurve& a, const BandwidthCurve& b) {
  std::set<Bytes> sizes;
  for (const auto& point : a.points) sizes.insert(point.size);
  for (const auto& point : b.points) sizes.insert(point.size);
  BandwidthCurve curve;
  for (const Bytes size : sizes) curve.points.push_back({size, std::min(a.at(size), b.at(size))});
  const auto same = [&](const auto& point) { return point.rate == curve.points[0].rate; };
  if (std::all_of(curve.points.begin(), curve.points.end(), same)) curve.points.resize(1);
  return curve;
}

/// The hops of a route from a to b: up through its links in order, down in reverse. Nothing if the
/// route does not connect them.
std::optional<std::vector<Hop>> hops(const ClusterFile& file, const RouteEntry& route,
                                     std::size_t a, std::size_t b) {
  std::vector<Hop> up, down;
  for (const std::size_t over : route.over) {
    const LinkEntry* link = &file.links[over];
    if (link->shape == LinkEntry::Shape::Pair) {
      if (!link->pairs.contains({std::min(a, b), std::max(a, b)})) return std::nullopt;
      up.push_back(
          {link, std::to_string(std::min(a, b)) + "-" + std::to_string(std::max(a, b)), a < b});
      continue;
    }
    const std::size_t from = link->groups[a], to = link->groups[b];
    if (from == kNoGroup || to == kNoGroup) return std::nullopt;
    if (link->shape == LinkEntry::Shape::Group) {
      if (from == to) continue;
      up.push_back({link, std::to_string(from), true});
      down.push_back({link, std::to_string(to), false});
    } else {
      if (from != to) return std::nullopt;  // not within the same group
      up.push_back({link, std::to_string(a), true});
      down.push_back({link, std::to_string(b), false});
    }
  }
  if (up.empty()) return std::nullopt;
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

/// Gives every directed link its number, in the order in which paths first use them.
class LinkNumbers {
 public:
  explicit LinkNumbers(std::vector<Link>& links) : links_(links) {}

  std::size_t link_of(const Hop& hop) {
    const std::string name = name_of(hop);
    const auto [at, added] = numbers_.try_emplace(name, links_.size());
    if (added) links_.push_back({name, fastest(hop.up ? hop.entry->up : hop.entry->down)});
    return at->second;
  }
  /// Nothing if no path uses it.
  std::optional<std::size_t> find(const Hop& hop) const {
    const auto found = numbers_.find(name_of(hop));
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static std::string name_of(const Hop& hop) {
    const char* way = hop.entry->half_duplex ? "" : hop.up ? ".up" : ".down";
    return hop.entry->name + "[" + hop.owner + "]" + way;
  }

  std::vector<Link>& links_;
  std::map<std::string, std::size_t> numbers_;
};

Path path_over(const RouteEntry& route, const YamlNode& node, const std::vector<Hop>& way,
               LinkNumbers& numbers) {
  Path path;
  bool has_latency = false;
  for (const Hop& hop : way) {
    const BandwidthCurve& curve = hop.up ? hop.entry->up : hop.entry->down;
    path.bandwidth = path.links.empty() ? curve : narrower(path.bandwidth, curve);
    path.links.push_back(numbers.link_of(hop));
    path.latency += hop.entry->latency.value_or(Nanoseconds{0});
    has_latency = has_latency || hop.entry->latency.has_value();
  }
  if (route.latency) path.latency = *route.latency;
  if (!route.latency && !has_latency)
    node.fail("neither the route nor one of its links has a latency; add `latency: 15 us`");
  return path;
}

/// [device] the links of `rings` that paths use, out of the device and into it.
std::vector<std::vector<std::size_t>> ring_links(const ClusterFile& file,
                                                 const LinkNumbers& numbers) {
  std::vector<std::vector<std::size_t>> rings(file.device_count());
  for (const std::size_t ring : *file.rings) {
    const LinkEntry* entry = &file.links[ring];
    for (std::size_t d = 0; d < rings.size(); ++d) {
      const bool own = entry->shape == LinkEntry::Shape::Device;
      const std::string owner = std::to_string(own ? d : entry->groups[d]);
      for (const bool up : {true, false})
        if (const auto link = numbers.find({entry, owner, up});
            link && std::ranges::find(rings[d], *link) == rings[d].end())
          rings[d].push_back(*link);
    }
  }
  return rings;
}

/// ConfigError at the first route that connects devices, but none that an earlier one does not.
void check_taken(const ClusterFile& file, const std::vector<bool>& taken,
                 const std::vector<YamlNode>& nodes) {
  const std::size_t devices = file.device_count();
  const auto pair_of = [&](const RouteEntry& route) {
    for (std::size_t a = 0; a < devices; ++a)
      for (std::size_t b = a + 1; b < devices; ++b)
        if (hops(file, route, a, b)) return std::optional(std::pair(a, b));
    return std::optional<std::pair<std::size_t, std::size_t>>();
  };
  for (std::size_t r = 0; r < taken.size(); ++r) {
    const auto pair = taken[r] ? std::nullopt : pair_of(file.routes[r]);
    if (!pair) continue;
    std::size_t earlier = 0;
    while (!hops(file, file.routes[earlier], pair->first, pair->second)) ++earlier;
    nodes[r].fail(stream_all(
        "this route is never taken: an earlier one connects every pair of devices that it does, "
        "as ",
        pair->first, " with ", pair->second, " over \"",
        file.links[file.routes[earlier].over.front()].name, "\" (line ",
        nodes[earlier].where().line,
        "); limit the earlier link (`within: node` of a link `per: device`), put this route before "
        "it, or remove it"));
  }
}

/// Fills in links and paths.
void add_paths(const ClusterFile& file, const YamlNode& root, LinkNumbers& numbers,
               Cluster& cluster) {
  const std::size_t devices = cluster.devices();
  const auto routes = root.find("routes");
  const std::vector<YamlNode> nodes = routes ? routes->items() : std::vector<YamlNode>{};
  std::vector<bool> taken(file.routes.size());
  cluster.paths.assign(devices * devices, {});
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      std::optional<std::vector<Hop>> way;
      for (std::size_t r = 0; r < file.routes.size() && !way; ++r) {
        way = hops(file, file.routes[r], a, b);
        if (!way) continue;
        taken[r] = true;
        cluster.paths[a * devices + b] = path_over(file.routes[r], nodes[r], *way, numbers);
      }
      if (!way)
        routes.value_or(root).fail(
            "no route connects device " + std::to_string(a) + " with device " + std::to_string(b) +
            "; add one, the last may be a link `per: device` that joins all");
    }
  check_taken(file, taken, nodes);
}

}  // namespace

Cluster resolved(const ClusterFile& file, const YamlNode& root) {
  Cluster cluster{.name = file.name, .kinds = file.kinds, .notes = file.notes};
  for (const DeviceCount& entry : file.devices)
    cluster.kind_of_device.insert(cluster.kind_of_device.end(), entry.count, entry.kind);
  cluster.host_memory = file.host_memory;
  cluster.devices_per_node = file.devices_per_node.value_or(0);
  LinkNumbers numbers(cluster.links);
  add_paths(file, root, numbers, cluster);
  if (file.rings) cluster.rings = ring_links(file, numbers);
  return cluster;
}

}  // namespace pfeife
