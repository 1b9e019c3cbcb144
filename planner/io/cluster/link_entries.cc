#include "planner/io/cluster/link_entries.h"

#include <algorithm>

#include "planner/io/files/quantity.h"

namespace pfeife {
namespace {

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

/// Reads the entries of `links` of a cluster with so many devices.
class LinkReader {
 public:
  LinkReader(const YamlNode& root, std::size_t devices) : root_(root), devices_(devices) {
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

  const YamlNode& root_;
  std::size_t devices_;
  Groups node_of_device_;
};

RouteEntry read_route(const YamlNode& node,
                      const std::vector<std::pair<std::string, const LinkEntry*>>& by_name) {
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

}  // namespace

std::vector<LinkEntry> read_links(const YamlNode& root, std::size_t devices) {
  return LinkReader(root, devices).links();
}

std::vector<RouteEntry> read_routes(const YamlNode& root, const std::vector<LinkEntry>& links) {
  std::vector<std::pair<std::string, const LinkEntry*>> by_name;
  for (const LinkEntry& entry : links) by_name.emplace_back(entry.name, &entry);
  std::vector<RouteEntry> entries;
  std::set<const LinkEntry*> used;
  if (const auto list = root.find("routes"))
    for (const YamlNode& node : list->items()) {
      entries.push_back(read_route(node, by_name));
      used.insert(entries.back().over.begin(), entries.back().over.end());
    }
  for (std::size_t i = 0; i < links.size(); ++i)
    if (!used.contains(&links[i]))
      root.at("links").items()[i].fail("the link \"" + links[i].name +
                                       "\" is in no route; add it to `routes` or remove it");
  return entries;
}

}  // namespace pfeife
