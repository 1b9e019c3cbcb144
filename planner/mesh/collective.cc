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
         (seconds(network.inner().latency) +
          steps * (kHop + bytes / static_cast<double>(ranks) / network.inner().bandwidth.value));
}

/// Ranks of the group that one domain of the level inside of `level` has.
std::int64_t inside(const GroupShape& group, std::size_t level) { return group.within[level - 1]; }
/// Whether ranks of the group have to cross `level`.
bool crosses(const GroupShape& group, std::size_t level) {
  return group.within[level] > inside(group, level);
}
/// Parts of the group that the level inside of `level` joins no further.
double parts(const GroupShape& group, std::size_t level) {
  return static_cast<double>(group.ranks() / inside(group, level));
}

/// An all-reduce of bytes over `level`, by all ranks that a domain inside of it has at once: the
/// steps of this level, and all bytes that leave such a domain.
double beyond(double bytes, const GroupShape& group, std::size_t level, const Network& network) {
  const NetworkLevel& joined = network.levels[level];
  const auto domains = static_cast<double>(group.within[level] / inside(group, level));
  const double ring = 2 * (domains - 1), tree = 2 * std::ceil(std::log2(domains));
  const double rate = joined.bandwidth.value * static_cast<double>(inside(group, level));
  const double all = parts(group, level);
  return std::min(ring, tree) * seconds(joined.latency) + 2 * (all - 1) / all * bytes / rate;
}

/// All-reduces, gathers and scatters.
double over_levels(CollectiveKind kind, double bytes, const GroupShape& group,
                   const Network& network) {
  double time = local_ring(kind, bytes, group.within.front(), network);
  if (group.level() == 0) return time;
  // What a message of no size takes is what does not overlap.
  double base = local_ring(kind, 0, group.within.front(), network);
  for (std::size_t level = 1; level < group.within.size(); ++level) {
    if (!crosses(group, level)) continue;
    const double part = part_of_all_reduce(kind);
    time = std::max(time, base + part * beyond(bytes, group, level, network));
    base += part * beyond(0, group, level, network);
  }
  return time;
}

/// Each rank sends every other one its part at once.
double all_to_all(double bytes, const GroupShape& group, const Network& network) {
  if (group.level() == 0)
    if (const auto measured = by_tables(CollectiveKind::AllToAll, bytes, group.ranks(), network))
      return *measured;
  const auto ranks = static_cast<double>(group.ranks()),
             near = static_cast<double>(group.within.front());
  double time = (near - 1) / ranks * bytes / network.inner().bandwidth.value;
  for (std::size_t level = 1; level < group.within.size(); ++level)
    if (crosses(group, level))
      time = std::max(time, (ranks - static_cast<double>(inside(group, level))) / ranks * bytes /
                                std::max(network.levels[level].bandwidth.value, 1.0));
  return seconds(network.levels[group.level()].latency) + time;
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

namespace {

/// The ranks that each group along `axes` has in one domain of so many devices.
std::int64_t ranks_within(const Mesh& mesh, const std::vector<Axis>& axes, std::int64_t devices) {
  if (hosts_align(mesh, devices)) {
    std::int64_t ranks = 1;
    for (const Axis axis : axes)
      ranks *= std::clamp<std::int64_t>(devices / mesh.stride(axis), 1, mesh.size(axis));
    return ranks;
  }
  std::optional<std::int64_t> ranks;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    const std::vector<DeviceId> group = group_of(mesh, DeviceId{d}, axes);
    if (group.front() != DeviceId{d}) continue;  // once a group
    std::map<std::int64_t, std::int64_t> by_domain;
    for (const DeviceId member : group) ++by_domain[member.value / devices];
    for (const auto& [domain, count] : by_domain) {
      if (!ranks) ranks = count;
      if (*ranks == count) continue;
      std::string names;
      for (const Axis axis : axes) names += (names.empty() ? "" : " x ") + to_string(axis);
      throw ConfigError(
          {}, stream_all("the groups of ", names, " do not lie alike on hosts of ", devices,
                         " devices: one has ", *ranks, " of its devices in a host, that of ",
                         "device ", d, " has ", count, "; choose sizes or an order of axes where ",
                         "each group lies within a host or takes equal parts of several"));
    }
  }
  return *ranks;
}

}  // namespace

GroupShape group_shape(const Mesh& mesh, const std::vector<Axis>& axes,
                       const std::vector<std::int64_t>& domains) {
  GroupShape shape{.within = {}};
  for (const std::int64_t devices : domains)
    shape.within.push_back(ranks_within(mesh, axes, devices));
  return shape;
}

Nanoseconds collective_time(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                            const Network& network) {
  if (group.ranks() == 1) return Nanoseconds{0};
  const auto size = static_cast<double>(bytes.value);
  return nanoseconds_from_seconds(kind == CollectiveKind::AllToAll
                                      ? all_to_all(size, group, network)
                                      : over_levels(kind, size, group, network));
}

Nanoseconds expert_exchange_time(Bytes copies, const ExpertRouting& routing,
                                 const GroupShape& group, const Network& network) {
  if (group.ranks() == 1) return Nanoseconds{0};
  const double tokens = static_cast<double>(copies.value) / static_cast<double>(routing.top_k);
  // Bytes that reach so many parts of the group, each of which is as likely the token's own.
  const auto sent = [&](std::int64_t ranks, double parts) {
    return tokens * groups_met(routing, ranks) * (parts - 1) / parts;
  };
  double time = sent(group.ranks(), static_cast<double>(group.within.front())) /
                network.inner().bandwidth.value;
  Nanoseconds latency = network.inner().latency;
  for (std::size_t level = 1; level < group.within.size(); ++level) {
    if (!crosses(group, level)) continue;
    const double domains = parts(group, level);
    time = std::max(time, sent(static_cast<std::int64_t>(domains), domains) /
                              std::max(network.levels[level].bandwidth.value, 1.0));
    latency += network.levels[level].latency;
  }
  return nanoseconds_from_seconds(time) + latency;
}

}  // namespace pfeife
