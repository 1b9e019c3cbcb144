#include "planner/mesh/replicated_layers.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/request/check.h"
#include "planner/mesh/sharded_parameters.h"

namespace pfeife {
namespace {

constexpr Bytes kBucket{std::int64_t{25} << 20};

void check_alike(const Cluster& cluster) {
  for (std::size_t a = 0; a < cluster.devices(); ++a)
    for (std::size_t b = 0; b < cluster.devices(); ++b) {
      if (a == b) continue;
      const Path &path = cluster.path(DeviceId{a}, DeviceId{b}),
                 &first = cluster.path(DeviceId{0}, DeviceId{1});
      if (path.latency == first.latency && path.bandwidth == first.bandwidth) continue;
      throw RefusedWish(
          "parallel",
          stream_all("parallel.dp needs devices that are all equally far apart, and devices ", a,
                     " and ", b, " are not as 0 and 1; take a cluster of one host with a ",
                     "switch, or an architecture file, whose mesh may have many hosts"));
    }
}

class Replicator {
 public:
  Replicator(Layers layers, const Replicas& replicas, const Cluster& cluster)
      : layers_(std::move(layers)), replicas_(replicas) {
    std::vector<DeviceId> ring;
    for (std::int64_t k = 0; k < replicas.count; ++k)
      ring.emplace_back(static_cast<std::size_t>(k));
    per_byte_ = static_cast<double>(all_reduce_time(cluster, ring, kBucket).count()) /
                static_cast<double>(kBucket.value);
    share_ = share_of_links(cluster);
  }

  Layers replicate() {
    if (replicas_.zero >= 3) shard_parameters();
    divide_updates();
    if (replicas_.zero < 3) add_reductions();
    divide_bytes();
    layers_.notes.push_back(stream_all(
        replicas_.count, " replicas, ZeRO ", replicas_.zero,
        replicas_.zero >= 3          ? ": exposed gathers and scatters in the layers' times"
        : layers_.reductions.empty() ? ": reductions of gradients in the optimizer's times"
                                     : ": reductions of gradients beside backwards"));
    return std::move(layers_);
  }

 private:
  /// The share of the narrowest link of a device's ring, while it reduces. 0 if nothing else goes
  /// over it.
  double share_of_links(const Cluster& cluster) const {
    const double rate = narrowest(cluster, ring_links(cluster, DeviceId{0})).value;
    if (rate <= 0 || per_byte_ <= 0) return 0;
    const auto count = static_cast<double>(replicas_.count);
    return std::min(1.0, 2 * (count - 1) / count / rate * 1e9 / per_byte_);
  }
  Nanoseconds all_reduce(Bytes bytes) const {
    return Nanoseconds{std::llround(per_byte_ * static_cast<double>(bytes.value))};
  }
  Bytes part(Bytes bytes) const {
    return Bytes{(bytes.value + replicas_.count - 1) / replicas_.count};
  }

  void divide_updates() {
    if (replicas_.zero < 1) return;
    for (LayerParameter& parameter : layers_.parameters)
      for (Nanoseconds& update : parameter.optimizer) update /= replicas_.count;
  }

  void divide_bytes() {
    for (LayerParameter& parameter : layers_.parameters) {
      if (replicas_.zero >= 1) parameter.state = part(parameter.state);
      if (replicas_.zero >= 2) parameter.gradient = part(parameter.gradient);
      if (replicas_.zero >= 3) parameter.bytes = part(parameter.bytes);
    }
  }

  void add_reductions() {
    std::vector<LayerReduction> of(layers_.size());
    for (std::size_t l = 0; l < of.size(); ++l) {
      of[l].beside = Nanoseconds::max();
      for (const LayerTimes& times : layers_.layers[l].times)
        of[l].beside = std::min(of[l].beside, times.backward_input + times.backward_weight);
    }
    for (LayerParameter& parameter : layers_.parameters) {
      if (parameter.users.empty()) continue;
      const Nanoseconds time = all_reduce(parameter.gradient);
      // Ranks that share a parameter add up their gradients first.
      if (replicas_.overlap_reductions && parameter.users.size() == 1) {
        LayerReduction& reduction = of[parameter.users.front().index()];
        reduction.time += time;
        reduction.wire += Nanoseconds{std::llround(share_ * static_cast<double>(time.count()))};
        continue;
      }
      parameter.optimizer.resize(layers_.layers.front().times.size());
      for (Nanoseconds& update : parameter.optimizer) update += time;
    }
    if (replicas_.overlap_reductions) layers_.reductions = std::move(of);
  }

  /// Each layer is a unit; those without parameters gather nothing.
  void shard_parameters() {
    std::vector<ShardedUnit> units(layers_.size());
    for (const LayerParameter& parameter : layers_.parameters)
      for (const LayerId user : parameter.users) {
        units[user.index()].parameters += parameter.bytes;
        units[user.index()].gradients += parameter.gradient;
      }
    for (ShardedUnit& unit : units) {
      unit.gather = all_reduce(unit.parameters) / 2;
      unit.scatter = all_reduce(unit.gradients) / 2;
    }
    for (std::size_t kind = 0; kind < layers_.layers.front().times.size(); ++kind) {
      for (std::size_t l = 0; l < units.size(); ++l) {
        const LayerTimes& times = layers_.layers[l].times[kind];
        units[l].forward = times.forward;
        units[l].backward = times.backward_input + times.backward_weight;
      }
      const std::vector<UnitSharding> sharding = sharding_of(units);
      for (std::size_t l = 0; l < units.size(); ++l) {
        LayerTimes& times = layers_.layers[l].times[kind];
        times.forward += sharding[l].forward, times.backward_input += sharding[l].backward;
        if (kind == 0) layers_.layers[l].temporary += sharding[l].held;
      }
    }
  }

  Layers layers_;
  const Replicas replicas_;
  double per_byte_ = 0;  // ns of an all-reduce
  double share_ = 0;
};

/// [link] Whether no device is at one end of every path over it.
std::vector<bool> is_shared(const Cluster& cluster) {
  std::vector<std::vector<DeviceId>> ends(cluster.links.size());  // common to all so far
  std::vector<bool> crossed(cluster.links.size(), false), shared = crossed;
  for (std::size_t a = 0; a < cluster.devices(); ++a)
    for (std::size_t b = 0; b < cluster.devices(); ++b)
      for (const std::size_t link : cluster.path(DeviceId{a}, DeviceId{b}).links) {
        if (!crossed[link]) ends[link] = {DeviceId{a}, DeviceId{b}};
        crossed[link] = true;
        std::erase_if(ends[link],
                      [&](DeviceId end) { return end != DeviceId{a} && end != DeviceId{b}; });
        shared[link] = ends[link].empty();
      }
  return shared;
}

}  // namespace

Cluster shared_by_replicas(Cluster cluster, const Replicas& replicas) {
  if (replicas.count == 1) return cluster;
  const std::vector<bool> shared = is_shared(cluster);
  for (std::size_t link = 0; link < shared.size(); ++link)
    if (shared[link]) cluster.links[link].alike = replicas.count;
  return cluster;
}

Layers replicated(Layers layers, const Replicas& replicas, const Cluster& cluster) {
  if (replicas.count == 1) return layers;
  if (cluster.devices() < static_cast<std::size_t>(replicas.count))
    throw RefusedWish("parallel",
                      stream_all("parallel.dp is ", replicas.count, ", and the cluster has ",
                                 cluster.devices(), " devices"));
  check_alike(cluster);
  return Replicator(std::move(layers), replicas, cluster).replicate();
}

}  // namespace pfeife
