#include "planner/mesh/collective.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// A step of a ring over NVLink besides its bytes (NCCL's tuning table, protocol Simple).
constexpr double kHop = 3.4e-6;

/// Linear in the size between the measured points; below the first along the first two, above the
/// last in proportion.
double at(const AllReduceTable& table, double bytes) {
  const auto point = [&](std::size_t i) {
    return std::pair(static_cast<double>(table.times[i].first.value),
                     seconds(table.times[i].second));
  };
  const std::size_t count = table.times.size();
  const auto [last_size, last_time] = point(count - 1);
  if (count == 1 || bytes >= last_size) return last_time * bytes / last_size;
  std::size_t next = 1;
  while (next + 1 < count && point(next).first < bytes) ++next;
  const auto [size, time] = point(next - 1);
  const auto [next_size, next_time] = point(next);
  return std::max(time + (next_time - time) * (bytes - size) / (next_size - size), 0.0);
}

/// By two tables: what a ring's base and its step take for the bytes that a step sends.
double by_tables(const AllReduceTable& small, const AllReduceTable& large, double bytes,
                 std::int64_t ranks) {
  const double part = bytes / static_cast<double>(ranks);
  const double few = at(small, part * static_cast<double>(small.ranks)),
               many = at(large, part * static_cast<double>(large.ranks));
  const auto steps = [](std::int64_t k) { return 2 * static_cast<double>(k - 1); };
  const double step = (many - few) / (steps(large.ranks) - steps(small.ranks));
  return few + step * (steps(ranks) - steps(small.ranks));
}

double local_all_reduce(double bytes, std::int64_t ranks, const Network& network) {
  if (ranks == 1) return 0;
  const auto& tables = network.all_reduce;
  for (const AllReduceTable& table : tables)
    if (table.ranks == ranks) return at(table, bytes);
  if (tables.size() >= 2) {
    std::size_t above = 1;
    while (above + 1 < tables.size() && tables[above].ranks < ranks) ++above;
    return by_tables(tables[above - 1], tables[above], bytes, ranks);
  }
  const double steps = 2 * static_cast<double>(ranks - 1);
  return seconds(network.port_latency) +
         steps * (kHop + bytes / static_cast<double>(ranks) / network.port.value);
}

/// Among hosts, each rank of the group with its NIC: bytes over all of them.
double between_hosts(double bytes, const GroupShape& group, const Network& network) {
  const auto hosts = static_cast<double>(group.hosts());
  const double ring = 2 * (hosts - 1), tree = 2 * std::ceil(std::log2(hosts));
  const double rate = network.nic.value * static_cast<double>(group.per_host);
  return std::min(ring, tree) * seconds(network.nic_latency) +
         2 * (hosts - 1) / hosts * bytes / rate;
}

double all_reduce(double bytes, const GroupShape& group, const Network& network) {
  const double local = local_all_reduce(bytes, group.per_host, network);
  if (group.hosts() == 1) return local;
  // What a message of no size takes is what does not overlap.
  const double base = local_all_reduce(0, group.per_host, network);
  return std::max(local, base + between_hosts(bytes, group, network));
}

/// Each rank sends every other one its part at once.
double all_to_all(double bytes, const GroupShape& group, const Network& network) {
  const auto ranks = static_cast<double>(group.ranks), near = static_cast<double>(group.per_host);
  const double local = (near - 1) / ranks * bytes / network.port.value,
               far = (ranks - near) / ranks * bytes / std::max(network.nic.value, 1.0);
  return seconds(group.hosts() > 1 ? network.nic_latency : network.port_latency) +
         (group.hosts() > 1 ? std::max(local, far) : local);
}

}  // namespace

GroupShape group_shape(const Mesh& mesh, const std::vector<Axis>& axes,
                       std::int64_t devices_per_host) {
  if (hosts_align(mesh, devices_per_host)) {
    GroupShape all;
    for (const Axis axis : axes) {
      const std::int64_t near = devices_per_host / mesh.stride(axis);
      all.ranks *= mesh.size(axis);
      all.per_host *= std::clamp<std::int64_t>(near, 1, mesh.size(axis));
    }
    return all;
  }
  std::optional<GroupShape> shape;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    const std::vector<DeviceId> group = group_of(mesh, DeviceId{d}, axes);
    if (group.front() != DeviceId{d}) continue;  // once a group
    std::map<std::int64_t, std::int64_t> per_host;
    for (const DeviceId member : group) ++per_host[member.value / devices_per_host];
    for (const auto& [host, count] : per_host) {
      const GroupShape here{static_cast<std::int64_t>(group.size()), count};
      if (!shape) shape = here;
      if (*shape == here) continue;
      std::string names;
      for (const Axis axis : axes) names += (names.empty() ? "" : " x ") + to_string(axis);
      throw ConfigError(
          {},
          stream_all("the groups of ", names, " do not lie alike on hosts of ", devices_per_host,
                     " devices: one has ", shape->per_host, " of its devices in a host, that of ",
                     "device ", d, " has ", count, "; choose sizes or an order of axes where ",
                     "each group lies within a host or takes equal parts of several"));
    }
  }
  return *shape;
}

Nanoseconds collective_time(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                            const Network& network) {
  if (group.ranks == 1) return Nanoseconds{0};
  const auto size = static_cast<double>(bytes.value);
  switch (kind) {
    case CollectiveKind::AllReduce:
      return nanoseconds_from_seconds(all_reduce(size, group, network));
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:  // half of the steps
      return nanoseconds_from_seconds(all_reduce(size, group, network) / 2);
    case CollectiveKind::AllToAll:
      return nanoseconds_from_seconds(all_to_all(size, group, network));
  }
  return Nanoseconds{0};
}

}  // namespace pfeife
