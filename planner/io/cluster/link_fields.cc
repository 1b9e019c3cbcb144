// The entries `links` and `routes` of cluster.yaml.
#include <algorithm>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/files/quantity.h"

namespace pfeife {
namespace {

using Shape = LinkEntry::Shape;

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
    // Lower bounds of the search rely on it.
    if (!curve.points.empty() &&
        seconds_at(size, rate) < seconds_at(curve.points.back().size, curve.points.back().rate))
      point.fail("a message of " + to_string(size) + " would take less time than one of " +
                 to_string(curve.points.back().size) + "; lower this rate, or leave the point out");
    curve.points.push_back({size, rate});
  }
  if (curve.points.empty()) node.fail("expected at least one point [size, rate]");
  return curve;
}

YamlValue curve_value(const BandwidthCurve& curve) {
  if (curve.points.size() == 1 && curve.points.front().size == Bytes{1})
    return yaml_amount(curve.points.front().rate);
  return list_value(curve.points, [](const BandwidthCurve::Point& point) {
    return yaml_sequence({yaml_amount(point.size), yaml_amount(point.rate)});
  });
}

void read_bandwidth(const YamlNode& node, LinkEntry& entry) {
  if (!node.is_map()) {
    entry.up = entry.down = read_curve(node);
    return;
  }
  node.check_keys({"up", "down"});
  entry.up = read_curve(node.at("up"));
  entry.down = read_curve(node.at("down"));
}

YamlValue bandwidth_value(const LinkEntry& entry) {
  if (entry.up == entry.down) return curve_value(entry.up);
  return yaml_map({{"up", curve_value(entry.up), {}}, {"down", curve_value(entry.down), {}}});
}

/// Which devices of a cluster belong together.
class DeviceGroups {
 public:
  explicit DeviceGroups(const ClusterFile& file) : devices_(file.device_count()) {
    for (std::size_t d = 0; file.devices_per_node && d < devices_; ++d)
      node_of_device_.push_back(d / *file.devices_per_node);
  }

  Groups none() const { return Groups(devices_, 0); }

  Groups read(const YamlNode& node) const {
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

  YamlValue value(const Groups& groups) const {
    if (!node_of_device_.empty() && groups == node_of_device_) return yaml_scalar("node");
    std::vector<YamlValue> lists;
    for (std::size_t d = 0; d < groups.size(); ++d) {
      if (groups[d] == kNoGroup) continue;
      while (lists.size() <= groups[d]) lists.push_back(yaml_sequence({}));
      lists[groups[d]].items.push_back(yaml_scalar(std::to_string(d)));
    }
    return yaml_sequence(std::move(lists));
  }

  std::size_t device(const YamlNode& node) const {
    return node.as_count(0, static_cast<std::int64_t>(devices_) - 1);
  }

 private:
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

  std::size_t devices_;
  Groups node_of_device_;
};

void read_pairs(const YamlNode& node, const DeviceGroups& groups, LinkEntry& entry) {
  entry.shape = Shape::Pair;
  for (const YamlNode& pair : node.items()) {
    const auto ends = pair.items();
    if (ends.size() != 2) pair.fail("expected a pair of devices such as [0, 1]");
    const std::size_t a = groups.device(ends[0]), b = groups.device(ends[1]);
    if (a == b) pair.fail("a link joins two different devices");
    if (!entry.pairs.emplace(std::min(a, b), std::max(a, b)).second)
      pair.fail("this pair is here twice");
  }
}

YamlValue pairs_value(const LinkEntry& entry) {
  if (entry.shape != Shape::Pair) return {};
  std::vector<YamlValue> pairs;
  for (const auto& [a, b] : entry.pairs)
    pairs.push_back(
        yaml_sequence({yaml_scalar(std::to_string(a)), yaml_scalar(std::to_string(b))}));
  return yaml_sequence(std::move(pairs));
}

/// Links by name, as routes and rings say them.
Words<std::size_t> link_names(const ClusterFile& file) {
  Words<std::size_t> names;
  for (const LinkEntry& link : file.links) names.emplace_back(link.name, names.size());
  return names;
}

void check_route(const YamlNode& node, const std::vector<bool>& pairs,
                 const std::vector<std::size_t>& over) {
  if (over.empty()) node.fail("a route needs a link");
  const auto pair = [&](std::size_t link) { return pairs[link]; };
  if (over.size() > 1 && std::ranges::any_of(over, pair))
    node.fail("a link `between` two devices is a route of its own");
}

}  // namespace

FieldList<LinkEntry> link_fields(const ClusterFile& file) {
  const DeviceGroups groups(file);
  return {Field<LinkEntry>{
              "name", "a word without brackets",
              "what messages and traces call it: `nvswitch_port[3].up`, `nvlink[0-1].down`",
              [](const YamlNode& node, LinkEntry& entry) {
                entry.name = node.as_string();
                if (entry.name.empty() || entry.name.find_first_of("[]") != std::string::npos)
                  node.fail("a link's name is a word without brackets");
              },
              [](const LinkEntry& entry) { return yaml_string(entry.name); }}
              .always()
              .needed(),
          Field<LinkEntry>{
              "between", "pairs, `[[0, 1], [2, 3]]`",
              "a cable of its own for each pair (NVLink bridge)",
              [groups](const YamlNode& node, LinkEntry& entry) { read_pairs(node, groups, entry); },
              pairs_value}
              .by_default("none"),
          Field<LinkEntry>{"per", "`device`, or [groups](#groups)",
                           "`device`: a way in and out of each device (PCIe slot, NVSwitch port, a "
                           "NIC each); groups: of each group (PCIe root, a NIC for a host)",
                           [groups](const YamlNode& node, LinkEntry& entry) {
                             const bool own = node.is_scalar() && node.value().text == "device";
                             entry.shape = own ? Shape::Device : Shape::Group;
                             entry.groups = own ? groups.none() : groups.read(node);
                           },
                           [groups](const LinkEntry& entry) {
                             if (entry.shape == Shape::Pair) return YamlValue{};
                             return entry.shape == Shape::Device ? yaml_scalar("device")
                                                                 : groups.value(entry.groups);
                           }}
              .always()
              .by_default("none"),
          Field<LinkEntry>{"within", "[groups](#groups)",
                           "of `per: device`: it only leads to devices of the same group",
                           [groups](const YamlNode& node, LinkEntry& entry) {
                             if (entry.shape != Shape::Device)
                               node.fail("only a link `per: device` can lie within groups");
                             entry.groups = groups.read(node);
                           },
                           [groups](const LinkEntry& entry) {
                             const bool limited =
                                 entry.shape == Shape::Device && entry.groups != groups.none();
                             return limited ? groups.value(entry.groups) : YamlValue{};
                           }}
              .by_default("none"),
          Field<LinkEntry>{"bandwidth", "a rate, `[[size, rate], ...]`, or `{up: ..., down: ...}`",
                           "a curve over message size: between the points the time grows linearly "
                           "with the size, outside the rate is constant; a larger message must not "
                           "take less time. `up`: out of the device or group; of a pair, from the "
                           "smaller number to the larger",
                           read_bandwidth, bandwidth_value}
              .always()
              .needed(),
          field("latency", &LinkEntry::latency, duration(), "of a message that crosses it")
              .by_default("none"),
          field("duplex", &LinkEntry::half_duplex, word<bool>({{"full", false}, {"half", true}}),
                "`full`: two independent directions; `half`: both share one")};
}

LinkEntry read_link(const YamlNode& node, const ClusterFile& file) {
  const FieldList<LinkEntry> fields = link_fields(file);
  node.check_keys(fields.keys());
  if (node.find("between").has_value() == node.find("per").has_value())
    node.fail(
        "a link needs one of `between: [[0, 1], ...]`, `per: device`, `per: node` and "
        "`per: [[0, 1], ...]`");
  LinkEntry entry;
  fields.read_known(node, entry);
  if (entry.half_duplex && entry.up != entry.down)
    node.at("duplex").fail("a half-duplex link has one bandwidth for both directions");
  return entry;
}

LinkEntry device_link(const std::string& name, BytesPerSecond rate, std::size_t devices) {
  const BandwidthCurve constant{{{Bytes{1}, rate}}};
  return {.name = name, .groups = Groups(devices, 0), .up = constant, .down = constant};
}

FieldList<RouteEntry> route_fields(const ClusterFile& file) {
  const auto over = list_of(word(link_names(file)));
  std::vector<bool> pairs;
  for (const LinkEntry& link : file.links) pairs.push_back(link.shape == Shape::Pair);
  return {
      Field<RouteEntry>{"over", "a link, or a list",
                        "crossed up in the order given, and down in reverse: slot, root, root, "
                        "slot. A link `between` devices is a route of its own",
                        [over, pairs](const YamlNode& node, RouteEntry& entry) {
                          entry.over = over.read(node);
                          check_route(node, pairs, entry.over);
                        },
                        [over](const RouteEntry& entry) { return over.value(entry.over); }, true}
          .always()
          .needed(),
      field("latency", &RouteEntry::latency, duration(), "of the whole way")
          .by_default("the sum of the links' crossed")};
}

}  // namespace pfeife
