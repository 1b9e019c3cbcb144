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
double at(const CollectiveTable& table, double bytes) {
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

/// By tables of two sizes: what a ring's base and its step take for the bytes that a step sends.
double by_tables(const CollectiveTable& small, const CollectiveTable& large, double bytes,
                 std::int64_t ranks) {
  const double part = bytes / static_cast<double>(ranks);
  const double few = at(small, part * static_cast<double>(small.ranks)),
               many = at(large, part * static_cast<double>(large.ranks));
  const auto steps = [](std::int64_t k) { return 2 * static_cast<double>(k - 1); };
  const double step = (many - few) / (steps(large.ranks) - steps(small.ranks));
  return few + step * (steps(ranks) - steps(small.ranks));
}

const std::vector<CollectiveTable>& tables_of(CollectiveKind kind, const Network& network) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return network.all_gather;
    case CollectiveKind::ReduceScatter:
      return network.reduce_scatter;
    case CollectiveKind::AllToAll:
      return network.all_to_all;
    case CollectiveKind::AllReduce:
      break;
  }
  return network.all_reduce;
}

/// By the tables of a kind; nothing without a table of so many ranks or two others.
std::optional<double> by_tables(CollectiveKind kind, double bytes, std::int64_t ranks,
                                const Network& network) {
  const auto& tables = tables_of(kind, network);
  for (const CollectiveTable& table : tables)
    if (table.ranks == ranks) return at(table, bytes);
  if (tables.size() < 2) return std::nullopt;
  std::size_t above = 1;
  while (above + 1 < tables.size() && tables[above].ranks < ranks) ++above;
  return by_tables(tables[above - 1], tables[above], bytes, ranks);
}

/// A gather or a scatter has half of an all-reduce's steps.
double part_of_all_reduce(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce ? 1 : 0.5;
}

double local_ring(CollectiveKind kind, double bytes, std::int64_t ranks, const Network& network) {
  if (ranks == 1) return 0;
  if (const auto measured = by_tables(kind, bytes, ranks, network)) return *measured;
  if (const auto reduce = by_tables(CollectiveKind::AllReduce, bytes, ranks, network))
    return part_of_all_reduce(kind) * *reduce;
  const double steps = 2 * static_cast<double>(ranks - 1);
  return part_of_all_reduce(kind) *
         (seconds(network.port_latency) +
          steps * (kHop + bytes / static_cast<double>(ranks) / network.port.value));
}

/// Among hosts, each rank of the group with its NIC: an all-reduce of bytes over all of them.
double between_hosts(double bytes, const GroupShape& group, const Network& network) {
  const auto hosts = static_cast<double>(group.hosts());
  const double ring = 2 * (hosts - 1), tree = 2 * std::ceil(std::log2(hosts));
  const double rate = network.nic.value * static_cast<double>(group.per_host);
  return std::min(ring, tree) * seconds(network.nic_latency) +
         2 * (hosts - 1) / hosts * bytes / rate;
}

/// All-reduces, gathers and scatters.
double over_levels(CollectiveKind kind, double bytes, const GroupShape& group,
                   const Network& network) {
  const double local = local_ring(kind, bytes, group.per_host, network);
  if (group.hosts() == 1) return local;
  // What a message of no size takes is what does not overlap.
  const double base = local_ring(kind, 0, group.per_host, network);
  return std::max(local, base + part_of_all_reduce(kind) * between_hosts(bytes, group, network));
}

/// Each rank sends every other one its part at once.
double all_to_all(double bytes, const GroupShape& group, const Network& network) {
  if (group.hosts() == 1)
    if (const auto measured = by_tables(CollectiveKind::AllToAll, bytes, group.ranks, network))
      return *measured;
  const auto ranks = static_cast<double>(group.ranks), near = static_cast<double>(group.per_host);
  const double local = (near - 1) / ranks * bytes / network.port.value,
               far = (ranks - near) / ranks * bytes / std::max(network.nic.value, 1.0);
  return seconds(group.hosts() > 1 ? network.nic_latency : network.port_latency) +
         (group.hosts() > 1 ? std::max(local, far) : local);
}

/// Groups, each of as many experts, among which are those of one token, on average: all are equally
/// likely.
double groups_met(const ExpertRouting& routing, std::int64_t groups) {
  const auto all = static_cast<double>(routing.experts),
             elsewhere = all - all / static_cast<double>(groups);
  double none = 1;  // of the token's experts is in a given group
  for (std::int64_t chosen = 0; chosen < routing.top_k; ++chosen)
    none *= std::max(0.0, elsewhere - static_cast<double>(chosen)) /
            (all - static_cast<double>(chosen));
  return static_cast<double>(groups) * (1 - none);
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
  return nanoseconds_from_seconds(kind == CollectiveKind::AllToAll
                                      ? all_to_all(size, group, network)
                                      : over_levels(kind, size, group, network));
}

Nanoseconds expert_exchange_time(Bytes copies, const ExpertRouting& routing,
                                 const GroupShape& group, const Network& network) {
  if (group.ranks == 1) return Nanoseconds{0};
  const auto hosts = static_cast<double>(group.hosts()), near = static_cast<double>(group.per_host);
  const double tokens = static_cast<double>(copies.value) / static_cast<double>(routing.top_k);
  const double over_ports = tokens * groups_met(routing, group.ranks) * (near - 1) / near,
               over_nics = tokens * groups_met(routing, group.hosts()) * (hosts - 1) / hosts;
  double time = over_ports / network.port.value;
  if (hosts > 1) time = std::max(time, over_nics / std::max(network.nic.value, 1.0));
  return nanoseconds_from_seconds(time) + network.port_latency +
         (hosts > 1 ? network.nic_latency : Nanoseconds{0});
}

}  // namespace pfeife
