#include "planner/io/cluster_links.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "planner/io/quantity.h"

namespace pfeife {
namespace {

constexpr std::size_t kNoGroup = ~std::size_t{0};

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
  std::vector<const LinkEntry*> over;
  std::optional<Nanoseconds> latency;
  YamlNode node;
};

/// A directed link on the way from one device to another, before it has its number.
struct Hop {
  const LinkEntry* entry;
  std::string owner;  // "3", "0-1"
  bool up;
};

BandwidthCurve read_curve(const YamlNode& node) {
  BandwidthCurve curve;
  if (!node.is_sequence()) return {{{Bytes{1}, node.as_bytes_per_second()}}};
  for (const YamlNode& point : node.items()) {
    const auto pair = point.items();
    if (pair.size() != 2) point.fail("expected [size, rate] such as [1 MiB, 10 GB/s]");
    const Bytes size = pair[0].as_bytes();
    if (!curve.points.empty() && size <= curve.points.back().size)
      pair[0].fail("the size must grow from point to point");
    const BytesPerSecond rate = pair[1].as_bytes_per_second();
    const auto seconds = [](Bytes bytes, BytesPerSecond at) {
      return static_cast<double>(bytes.value) / at.value;
    };
    // Lower bounds of the search rely on it.
    if (!curve.points.empty() &&
        seconds(size, rate) < seconds(curve.points.back().size, curve.points.back().rate))
      point.fail("a message of " + to_string(size) + " would take less time than one of " +
                 to_string(curve.points.back().size) + "; lower this rate, or leave the point out");
    curve.points.push_back({size, rate});
  }
  if (curve.points.empty()) node.fail("expected at least one point [size, rate]");
  return curve;
}

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

/// Reads the entries of `links` and `routes` of a cluster with so many devices.
class Reader {
 public:
  Reader(const YamlNode& root, std::size_t devices) : root_(root), devices_(devices) {
    if (const auto per_node = root.find("devices_per_node")) {
      const std::size_t size = per_node->as_count(1);
      if (devices % size != 0)
        per_node->fail("the " + std::to_string(devices) + " devices do not fill nodes of " +
                       std::to_string(size));
      for (std::size_t d = 0; d < devices; ++d) node_of_device_.push_back(d / size);
    }
  }

  std::vector<LinkEntry> links() const {
    std::vector<LinkEntry> entries;
    std::set<std::string> names;
    const auto list = root_.find("links");
    if (!list) return entries;
    for (const YamlNode& node : list->items()) {
      entries.push_back(link(node));
      if (!names.insert(entries.back().name).second)
        node.at("name").fail("there is another link of this name");
    }
    return entries;
  }

  std::vector<RouteEntry> routes(const std::vector<LinkEntry>& links) const {
    std::vector<std::pair<std::string, const LinkEntry*>> by_name;
    for (const LinkEntry& entry : links) by_name.emplace_back(entry.name, &entry);
    std::vector<RouteEntry> entries;
    std::set<const LinkEntry*> used;
    if (const auto list = root_.find("routes"))
      for (const YamlNode& node : list->items()) {
        entries.push_back(route(node, by_name));
        used.insert(entries.back().over.begin(), entries.back().over.end());
      }
    for (std::size_t i = 0; i < links.size(); ++i)
      if (!used.contains(&links[i]))
        root_.at("links").items()[i].fail("the link \"" + links[i].name +
                                          "\" is in no route; add it to `routes` or remove it");
    return entries;
  }

 private:
  LinkEntry link(const YamlNode& node) const {
    node.check_keys({"name", "between", "per", "within", "bandwidth", "latency", "duplex"});
    LinkEntry entry;
    entry.name = node.at("name").as_string();
    if (entry.name.empty() || entry.name.find_first_of("[]") != std::string::npos)
      node.at("name").fail("a link's name is a word without brackets");
    read_shape(node, entry);
    read_bandwidth(node.at("bandwidth"), entry);
    if (const auto latency = node.find("latency")) entry.latency = latency->as_duration();
    if (const auto duplex = node.find("duplex"))
      entry.half_duplex = duplex->as_one_of<bool>({{"full", false}, {"half", true}});
    if (entry.half_duplex && entry.up != entry.down)
      node.at("duplex").fail("a half-duplex link has one bandwidth for both directions");
    return entry;
  }

  void read_shape(const YamlNode& node, LinkEntry& entry) const {
    const auto between = node.find("between"), per = node.find("per"), within = node.find("within");
    if (between.has_value() == per.has_value())
      node.fail(
          "a link needs one of `between: [[0, 1], ...]`, `per: device`, `per: node` and "
          "`per: [[0, 1], ...]`");
    if (between) {
      entry.shape = LinkEntry::Shape::Pair;
      read_pairs(*between, entry);
    } else if (per->is_scalar() && per->value().text == "device") {
      entry.shape = LinkEntry::Shape::Device;
      entry.groups = within ? groups(*within) : Groups(devices_, 0);
    } else {
      entry.shape = LinkEntry::Shape::Group;
      entry.groups = groups(*per);
    }
    if (within && entry.shape != LinkEntry::Shape::Device)
      within->fail("only a link `per: device` can lie within groups");
  }

  void read_pairs(const YamlNode& node, LinkEntry& entry) const {
    for (const YamlNode& pair : node.items()) {
      const auto ends = pair.items();
      if (ends.size() != 2) pair.fail("expected a pair of devices such as [0, 1]");
      const std::size_t a = device(ends[0]), b = device(ends[1]);
      if (a == b) pair.fail("a link joins two different devices");
      if (!entry.pairs.emplace(std::min(a, b), std::max(a, b)).second)
        pair.fail("this pair is here twice");
    }
  }

  void read_bandwidth(const YamlNode& node, LinkEntry& entry) const {
    if (!node.is_map()) {
      entry.up = entry.down = read_curve(node);
      return;
    }
    node.check_keys({"up", "down"});
    entry.up = read_curve(node.at("up"));
    entry.down = read_curve(node.at("down"));
  }

  Groups groups(const YamlNode& node) const {
    if (node.is_scalar()) {
      if (node.value().text != "node")
        node.fail("found \"" + node.value().text +
                  "\"; allowed: device (for `per`), node, or groups such as [[0, 1], [2-5]]");
      if (node_of_device_.empty())
        node.fail("`node` needs `devices_per_node` at the top of the file");
      return node_of_device_;
    }
    Groups group(devices_, kNoGroup);
    std::size_t number = 0;
    for (const YamlNode& list : node.items()) {
      for (const YamlNode& member : list.items()) add_members(member, number, group);
      ++number;
    }
    return group;
  }

  /// A device number, or a range such as 8-15.
  void add_members(const YamlNode& node, std::size_t number, Groups& group) const {
    const std::string text = node.as_string();
    const std::size_t dash = text.find('-', 1);
    if (dash == std::string::npos) {
      add_member(node, device(node), number, group);
      return;
    }
    const auto first = parse_integer(std::string_view(text).substr(0, dash));
    const auto last = parse_integer(std::string_view(text).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first ||
        *last >= static_cast<std::int64_t>(devices_))
      node.fail("expected a device or a range such as 0-7 within 0-" +
                std::to_string(devices_ - 1) + ", found \"" + text + "\"");
    for (std::int64_t d = *first; d <= *last; ++d)
      add_member(node, static_cast<std::size_t>(d), number, group);
  }

  void add_member(const YamlNode& node, std::size_t device, std::size_t number,
                  Groups& group) const {
    if (group[device] != kNoGroup)
      node.fail("device " + std::to_string(device) +
                " is in a group already; groups must not overlap");
    group[device] = number;
  }

  std::size_t device(const YamlNode& node) const {
    return node.as_count(0, static_cast<std::int64_t>(devices_) - 1);
  }

  RouteEntry route(const YamlNode& node,
                   const std::vector<std::pair<std::string, const LinkEntry*>>& by_name) const {
    node.check_keys({"over", "latency"});
    RouteEntry entry{{}, std::nullopt, node};
    for (const YamlNode& name : node.at("over").items_or_self())
      entry.over.push_back(name.as_one_of(by_name));
    if (entry.over.empty()) node.at("over").fail("a route needs a link");
    const auto pair = [](const LinkEntry* e) { return e->shape == LinkEntry::Shape::Pair; };
    if (entry.over.size() > 1 && std::any_of(entry.over.begin(), entry.over.end(), pair))
      node.at("over").fail("a link `between` two devices is a route of its own");
    if (const auto latency = node.find("latency")) entry.latency = latency->as_duration();
    return entry;
  }

  const YamlNode& root_;
  std::size_t devices_;
  Groups node_of_device_;
};

/// The hops of a route from a to b: up through its links in order, down in reverse. Nothing if the
/// route does not connect them.
std::optional<std::vector<Hop>> hops(const RouteEntry& route, std::size_t a, std::size_t b) {
  std::vector<Hop> up, down;
  for (const LinkEntry* link : route.over) {
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

  std::size_t of(const Hop& hop) {
    const LinkEntry& entry = *hop.entry;
    const std::string name = entry.name + "[" + hop.owner + "]" +
                             (entry.half_duplex ? ""
                              : hop.up          ? ".up"
                                                : ".down");
    const auto [at, added] = numbers_.try_emplace(name, links_.size());
    if (added) links_.push_back({name, fastest(hop.up ? entry.up : entry.down)});
    return at->second;
  }

 private:
  std::vector<Link>& links_;
  std::map<std::string, std::size_t> numbers_;
};

Path path_over(const RouteEntry& route, const std::vector<Hop>& way, LinkNumbers& numbers) {
  Path path;
  bool has_latency = false;
  for (const Hop& hop : way) {
    const BandwidthCurve& curve = hop.up ? hop.entry->up : hop.entry->down;
    path.bandwidth = path.links.empty() ? curve : narrower(path.bandwidth, curve);
    path.links.push_back(numbers.of(hop));
    path.latency += hop.entry->latency.value_or(Nanoseconds{0});
    has_latency = has_latency || hop.entry->latency.has_value();
  }
  if (route.latency) path.latency = *route.latency;
  if (!route.latency && !has_latency)
    route.node.fail("neither the route nor one of its links has a latency; add `latency: 15 us`");
  return path;
}

}  // namespace

void add_links_and_paths(const YamlNode& root, Cluster& cluster) {
  const std::size_t devices = cluster.devices();
  const Reader reader(root, devices);
  const std::vector<LinkEntry> links = reader.links();
  const std::vector<RouteEntry> routes = reader.routes(links);
  LinkNumbers numbers(cluster.links);
  cluster.paths.assign(devices * devices, {});
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      std::optional<std::vector<Hop>> way;
      for (std::size_t r = 0; r < routes.size() && !way; ++r) {
        way = hops(routes[r], a, b);
        if (way) cluster.paths[a * devices + b] = path_over(routes[r], *way, numbers);
      }
      if (!way)
        root.find("routes").value_or(root).fail(
            "no route connects device " + std::to_string(a) + " with device " + std::to_string(b) +
            "; add one, the last may be a link `per: device` that joins all");
    }
}

}  // namespace pfeife
