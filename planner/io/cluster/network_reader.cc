#include "planner/io/cluster/network_reader.h"

#include <algorithm>
#include <functional>

#include "planner/io/files/yaml_document.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

AllReduceTable read_table(const YamlNode& node, std::int64_t devices) {
  node.check_keys({"ranks", "times"});
  AllReduceTable table;
  table.ranks = node.at("ranks").as_int(2, devices);
  for (const YamlNode& point : node.at("times").items()) {
    const auto pair = point.items();
    if (pair.size() != 2) point.fail("expected [size, time] such as [1 MiB, 45 us]");
    const Bytes size = pair[0].as_bytes();
    if (size.value <= 0) pair[0].fail("the size must be above 0");
    if (!table.times.empty() && size <= table.times.back().first)
      pair[0].fail("the size must grow from point to point");
    table.times.emplace_back(size, pair[1].as_duration());
  }
  if (table.times.empty()) node.fail("expected at least one point [size, time] in `times`");
  return table;
}

void read_tables(const YamlNode& node, Network& network) {
  for (const YamlNode& entry : node.items()) {
    network.all_reduce.push_back(read_table(entry, network.devices_per_host));
    const std::size_t count = network.all_reduce.size();
    if (count > 1 && network.all_reduce[count - 1].ranks <= network.all_reduce[count - 2].ranks)
      entry.fail("`ranks` must grow from table to table");
  }
}

/// What every pair of the host's devices has between them.
void add_port(const YamlNode& root, const Cluster& host, Network& network) {
  if (host.devices() < 2) return;
  const Path& first = host.path(DeviceId{0}, DeviceId{1});
  for (std::size_t a = 0; a < host.devices(); ++a)
    for (std::size_t b = 0; b < host.devices(); ++b) {
      const Path& path = host.path(DeviceId{a}, DeviceId{b});
      if (a == b || (path.latency == first.latency && path.bandwidth == first.bandwidth)) continue;
      root.at("links").fail(stream_all(
          "in a host of a mesh every pair of devices is equally far apart, but devices ", a,
          " and ", b,
          " are not as 0 and 1; describe a host with one switch, or plan one pipeline on these "
          "links with a config without `parallel`"));
    }
  network.port = first.bandwidth.points.back().rate;
  network.port_latency = first.latency;
}

}  // namespace

Network read_network(const std::filesystem::path& file, const Replaced& replaced) {
  const Cluster host = read_cluster(file, replaced);
  const YamlDocument document = YamlDocument::parse(cluster_text(file, replaced), file.string());
  const YamlNode root = document.root();
  Network network;
  network.name = host.name;
  network.notes = host.notes;
  network.devices_per_host = static_cast<std::int64_t>(host.devices());
  if (std::ranges::adjacent_find(host.kind_of_device, std::not_equal_to{}) !=
      host.kind_of_device.end())
    root.at("devices").fail(
        "the devices of a mesh are of one kind, here are several; name one of them, or plan one "
        "pipeline on all of them with a config without `parallel`");
  network.device = host.kinds[host.kind_of_device.front()];
  add_port(root, host, network);
  if (const auto between = root.find("between_hosts")) {
    between->check_keys({"bandwidth", "latency"});
    network.nic = between->at("bandwidth").as_bytes_per_second();
    network.nic_latency = between->at("latency").as_duration();
  }
  if (const auto tables = root.find("all_reduce")) read_tables(*tables, network);
  return network;
}

}  // namespace pfeife
