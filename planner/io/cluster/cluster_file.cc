#include "planner/io/cluster/cluster_file.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

constexpr std::int64_t kMostDevices = 1024;  // paths are kept for every pair

/// A list whose entries refer to what stands before them in the file.
template <class Entry, class Read>
Field<ClusterFile> entries_of(std::string key, std::vector<Entry> ClusterFile::*member,
                              FieldList<Entry> (*fields)(const ClusterFile&), Read read,
                              std::string values, std::string about) {
  return {std::move(key),
          std::move(values),
          std::move(about),
          [member, read](const YamlNode& node, ClusterFile& file) {
            for (const YamlNode& item : node.items()) (file.*member).push_back(read(item, file));
          },
          [member, fields](const ClusterFile& file) {
            if ((file.*member).empty()) return YamlValue{};
            return list_value(file.*member, [list = fields(file)](const Entry& entry) {
              return list.value(entry);
            });
          },
          true,
          fields({}).keys()};
}

template <class Entry>
Entry read_entry(const YamlNode& node, const FieldList<Entry>& fields) {
  Entry entry;
  fields.read(node, entry);
  return entry;
}

void read_kinds(const YamlNode& node, ClusterFile& file) {
  for (const auto& [name, of_kind] : node.entries()) {
    DeviceKind& kind = file.kinds.emplace_back();
    kind.name = name;
    device_kind_fields().read(of_kind, kind);
  }
}

YamlValue kinds_value(const ClusterFile& file) {
  std::vector<YamlEntry> kinds;
  for (const DeviceKind& kind : file.kinds)
    kinds.push_back({kind.name, device_kind_fields().value(kind), {}});
  return yaml_map(std::move(kinds));
}

DeviceCount read_device(const YamlNode& node, const ClusterFile& file) {
  return read_entry(node, device_fields(file));
}

Field<ClusterFile> devices_field() {
  auto field = entries_of("devices", &ClusterFile::devices, device_fields, read_device,
                          "a list of `{kind: NAME, count: N}`",
                          "device numbers count through the list; kinds may be mixed");
  field.read = [read = field.read](const YamlNode& node, ClusterFile& file) {
    read(node, file);
    const auto total = static_cast<std::int64_t>(file.device_count());
    if (total == 0) node.fail("there is no device");
    if (total > kMostDevices)
      node.fail("a cluster may have " + std::to_string(kMostDevices) + " devices, here are " +
                std::to_string(total));
  };
  return field;
}

LinkEntry read_named_link(const YamlNode& node, const ClusterFile& file) {
  LinkEntry link = read_link(node, file);
  if (std::ranges::find(file.links, link.name, &LinkEntry::name) != file.links.end())
    node.at("name").fail("there is another link of this name");
  return link;
}

RouteEntry read_route(const YamlNode& node, const ClusterFile& file) {
  return read_entry(node, route_fields(file));
}

void read_devices_per_node(const YamlNode& node, ClusterFile& file) {
  const std::size_t size = node.as_count(1), devices = file.device_count();
  if (devices % size != 0)
    node.fail("the " + std::to_string(devices) + " devices do not fill nodes of " +
              std::to_string(size));
  file.devices_per_node = size;
}

/// Links that are no pairs.
Kind<std::vector<std::size_t>> ring_links_of(const ClusterFile& file) {
  Words<std::size_t> names;
  for (std::size_t i = 0; i < file.links.size(); ++i)
    if (file.links[i].shape != LinkEntry::Shape::Pair) names.emplace_back(file.links[i].name, i);
  return list_of(word(names));
}

FieldList<NetworkLevel> between_fields() {
  return {field("bandwidth", &NetworkLevel::bandwidth, bandwidth(), "").always().needed(),
          field("latency", &NetworkLevel::latency, duration(), "").always().needed()};
}

FieldList<NetworkLevel> domain_fields(const ClusterFile&) {
  return {field("devices", &NetworkLevel::devices, whole<std::int64_t>(1, 1 << 30), "")
              .always()
              .needed(),
          field("bandwidth", &NetworkLevel::bandwidth, bandwidth(), ""),
          field("latency", &NetworkLevel::latency, duration(), "")};
}

NetworkLevel read_domain(const YamlNode& node, const ClusterFile& file) {
  const NetworkLevel level = read_entry(node, domain_fields(file));
  const bool first = file.domains.empty(), own = level.bandwidth.value > 0;
  const std::int64_t inside =
      first ? static_cast<std::int64_t>(file.device_count()) : file.domains.back().devices;
  if (inside == 0 || level.devices % inside != 0 || level.devices == inside)
    node.at("devices").fail(stream_all(
        "a domain has several whole ", first ? "hosts" : "domains of the level before", ", and ",
        level.devices, " devices are not twice ", inside, " or another multiple of it"));
  if (!own && !first)
    node.fail(
        "only the first domain is joined as the devices of a host are; add `bandwidth` and "
        "`latency`");
  if (own && !node.find("latency")) node.fail("a domain with a bandwidth needs its `latency`");
  if (!own && node.find("latency")) node.fail("a domain with a latency needs its `bandwidth`");
  if (own && !first && file.domains.back().bandwidth.value > 0 &&
      level.bandwidth > file.domains.back().bandwidth)
    node.at("bandwidth")
        .fail(
            "what leaves a domain passes the level before, which is slower; give the lower of the "
            "two");
  return level;
}

using Times = std::vector<std::pair<Bytes, Nanoseconds>>;

Times read_times(const YamlNode& node) {
  Times times;
  for (const YamlNode& point : node.items()) {
    const auto pair = point.items();
    if (pair.size() != 2) point.fail("expected [size, time] such as [1 MiB, 45 us]");
    const Bytes size = pair[0].as_bytes();
    if (size.value <= 0) pair[0].fail("the size must be above 0");
    if (!times.empty() && size <= times.back().first)
      pair[0].fail("the size must grow from point to point");
    times.emplace_back(size, pair[1].as_duration());
  }
  if (times.empty()) node.fail("expected at least one point [size, time]");
  return times;
}

YamlValue times_value(const Times& times) {
  return list_value(times, [](const auto& point) {
    return yaml_sequence({yaml_amount(point.first), yaml_amount(point.second)});
  });
}

FieldList<CollectiveTable> collective_fields(const ClusterFile& file) {
  const auto devices = static_cast<std::int64_t>(file.device_count());
  return {field("ranks", &CollectiveTable::ranks, whole<std::int64_t>(2, devices), "")
              .always()
              .needed(),
          field("times", &CollectiveTable::times, Kind<Times>{"", read_times, times_value}, "")
              .needed()};
}

Field<ClusterFile> tables_of(std::string key, std::vector<CollectiveTable> ClusterFile::*member,
                             std::string about) {
  const auto read = [member](const YamlNode& node, const ClusterFile& file) {
    const CollectiveTable table = read_entry(node, collective_fields(file));
    if (!(file.*member).empty() && table.ranks <= (file.*member).back().ranks)
      node.fail("`ranks` must grow from table to table");
    return table;
  };
  return entries_of(std::move(key), member, collective_fields, read, "a list", std::move(about));
}

}  // namespace

std::size_t ClusterFile::device_count() const {
  std::size_t total = 0;
  for (const DeviceCount& entry : devices) total += entry.count;
  return total;
}

FieldList<DeviceCount> device_fields(const ClusterFile& file) {
  Words<std::size_t> kinds;
  for (const DeviceKind& kind : file.kinds) kinds.emplace_back(kind.name, kinds.size());
  return {field("kind", &DeviceCount::kind, word(kinds), "").always().needed(),
          field("count", &DeviceCount::count, whole<std::size_t>(1, kMostDevices), "")};
}

const FieldList<ClusterFile>& cluster_fields() {
  using Of = ClusterFile;
  static const FieldList<Of> fields = {
      version_field<Of>(1),
      field("name", &Of::name, any_text(), "what results call the cluster").always().needed(),
      field("notes", &Of::notes, list_of(any_text()),
            "lines for the report on where the figures come from"),
      Field<Of>{"device_kinds", "a map",
                "from a name to [what such a device can do](#device_kinds)", read_kinds,
                kinds_value, false, device_kind_fields().keys()}
          .below_names()
          .always()
          .needed(),
      devices_field().always().needed(),
      Field<Of>{"devices_per_node", "1 or more", "devices 0 .. n-1 are node 0, and so on",
                read_devices_per_node,
                [](const Of& file) {
                  return file.devices_per_node ? yaml_scalar(std::to_string(*file.devices_per_node))
                                               : YamlValue{};
                }}
          .by_default("none"),
      field("host_memory", &Of::host_memory, memory(),
            "of a node, that plans may offload to together: what its devices have away at once, at "
            "their highest")
          .by_default("no limit"),
      entries_of("links", &Of::links, link_fields, read_named_link, "a list",
                 "[what joins the devices](#links)")
          .by_default("none"),
      entries_of("routes", &Of::routes, route_fields, read_route, "a list",
                 "[over which links](#routes) devices reach each other")
          .by_default("none"),
      Field<Of>{"rings", "a link that joins no pair, or a list",
                "the links that the gradient all-reduce of a device's replicas uses, out and in; "
                "`[]`: none that messages cross, too. The simulator shares them",
                [](const YamlNode& node, Of& file) { file.rings = ring_links_of(file).read(node); },
                [](const Of& file) {
                  return file.rings ? ring_links_of(file).value(*file.rings) : YamlValue{};
                },
                true}
          .by_default("what every way out of the device has, and every way into it"),
      field("between_hosts", &Of::between_hosts, map_of(between_fields()),
            "of a mesh, whose hosts are this file's devices each: a device's share of the way out, "
            "`{bandwidth: 25 GB/s, latency: 20 us}`")
          .by_default("none"),
      entries_of("domains", &Of::domains, domain_fields, read_domain, "a list",
                 "of a mesh: what joins hosts, the innermost first. `[{devices: 72}]`: as many "
                 "devices are joined as those of a host are (NVL72); `[{devices: 256, bandwidth: "
                 "45 GB/s, latency: 20 us}]`: by a level of its own. `between_hosts` joins the "
                 "last of them")
          .by_default("none"),
      tables_of("all_reduce", &Of::all_reduce,
                "of a mesh: measured times within a host, "
                "`[{ranks: 2, times: [[1 MiB, 45 us], ...]}, {ranks: 8, ...}]`")
          .by_default("none"),
      tables_of("all_gather", &Of::all_gather, "likewise, by the size of what is gathered")
          .by_default("half of an all-reduce"),
      tables_of("reduce_scatter", &Of::reduce_scatter, "likewise, by the size of what is reduced")
          .by_default("half of an all-reduce"),
      tables_of("all_to_all", &Of::all_to_all, "likewise, by the size of what a device sends")
          .by_default("none")};
  return fields;
}

ClusterFile read_cluster_file(const YamlNode& root) {
  root.check_version(1);
  check_sections(root, sections(cluster_fields()));
  ClusterFile file;
  cluster_fields().read_known(root, file);
  std::vector<bool> used(file.links.size());
  for (const RouteEntry& route : file.routes)
    for (const std::size_t link : route.over) used[link] = true;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      root.at("links").items()[i].fail("the link \"" + file.links[i].name +
                                       "\" is in no route; add it to `routes` or remove it");
  return file;
}

std::string cluster_text(const ClusterFile& file) { return to_text(cluster_fields().value(file)); }

}  // namespace pfeife
