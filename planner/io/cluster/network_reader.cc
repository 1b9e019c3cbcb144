#include "planner/io/cluster/network_reader.h"

#include <algorithm>
#include <functional>

#include "planner/io/cluster/cluster_links.h"
#include "planner/io/files/yaml_document.h"
#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

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
  const YamlDocument document = cluster_document(file, replaced);
  const YamlNode root = document.root();
  const ClusterFile written = read_cluster_file(root);
  const Cluster host = resolved(written, root);
  Network network{.name = host.name,
                  .devices_per_host = static_cast<std::int64_t>(host.devices()),
                  .all_reduce = written.all_reduce,
                  .all_gather = written.all_gather,
                  .reduce_scatter = written.reduce_scatter,
                  .all_to_all = written.all_to_all,
                  .notes = host.notes};
  if (std::ranges::adjacent_find(host.kind_of_device, std::not_equal_to{}) !=
      host.kind_of_device.end())
    root.at("devices").fail(
        "the devices of a mesh are of one kind, here are several; name one of them, or plan one "
        "pipeline on all of them with a config without `parallel`");
  network.device = host.kinds[host.kind_of_device.front()];
  add_port(root, host, network);
  if (written.domain && *written.domain > network.devices_per_host) {
    network.host_of_domain = network.devices_per_host;
    network.devices_per_host = *written.domain;
  }
  if (const auto& between = written.between_hosts)
    network.nic = between->bandwidth, network.nic_latency = between->latency;
  return network;
}

std::string network_text(const Network& network) {
  const bool several = network.host_of_domain > 0;
  const std::int64_t host = several ? network.host_of_domain : network.devices_per_host;
  ClusterFile file{.name = network.name,
                   .notes = network.notes,
                   .kinds = {network.device},
                   .devices = {{0, static_cast<std::size_t>(host)}},
                   .all_reduce = network.all_reduce,
                   .all_gather = network.all_gather,
                   .reduce_scatter = network.reduce_scatter,
                   .all_to_all = network.all_to_all};
  if (network.devices_per_host > 1) {
    file.links.push_back(device_link("port", network.port, file.device_count()));
    file.routes.push_back({{0}, network.port_latency});
  }
  if (several) file.domain = network.devices_per_host;
  if (network.nic.value > 0) file.between_hosts = {network.nic, network.nic_latency};
  return cluster_text(file);
}

}  // namespace pfeife
