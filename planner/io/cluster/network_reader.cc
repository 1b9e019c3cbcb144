#include "planner/io/cluster/network_reader.h"

#include <algorithm>

#include "planner/io/cluster/cluster_file.h"
#include "planner/io/files/yaml.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/machine/mesh_run.h"

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
  network.levels.front().bandwidth = first.bandwidth.points.back().rate;
  network.levels.front().latency = first.latency;
}

}  // namespace

Network read_network(const std::filesystem::path& file, const Replaced& replaced) {
  const YamlDocument document = cluster_document(file, replaced);
  const YamlNode root = document.root();
  const ClusterFile written = read_cluster_file(root);
  const Cluster host = resolved(written, root);
  Network network{.name = host.name,
                  .devices_per_host = static_cast<std::int64_t>(host.devices()),
                  .levels = {{static_cast<std::int64_t>(host.devices())}},
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
  for (const NetworkLevel& domain : written.domains)
    if (domain.bandwidth.value == 0)  // joined as the devices of a host are
      network.levels.front().devices = domain.devices;
    else
      network.levels.push_back(domain);
  if (written.between_hosts) network.levels.push_back(*written.between_hosts);
  return network;
}

std::string network_text(const Network& network) {
  const NetworkLevel& inner = network.inner();
  ClusterFile file{.name = network.name,
                   .notes = network.notes,
                   .kinds = {network.device},
                   .devices = {{0, static_cast<std::size_t>(network.devices_per_host)}},
                   .all_reduce = network.all_reduce,
                   .all_gather = network.all_gather,
                   .reduce_scatter = network.reduce_scatter,
                   .all_to_all = network.all_to_all};
  if (network.devices_per_host > 1) {
    file.links.push_back(device_link(level_link(0), inner.bandwidth, file.device_count()));
    file.routes.push_back({{0}, inner.latency});
  }
  if (inner.devices > network.devices_per_host) file.domains.push_back({inner.devices});
  for (std::size_t level = 1; level < network.levels.size(); ++level)
    if (network.levels[level].devices > 0)
      file.domains.push_back(network.levels[level]);
    else
      file.between_hosts = network.levels[level];
  return cluster_text(file);
}

}  // namespace pfeife
