#include "planner/schedule_tool/any_devices.h"

#include <algorithm>
#include <set>

#include "planner/schedules/families.h"

namespace pfeife::tool {
namespace {

__extension__ using Big = __int128;

/// Of the kinds that devices are of, the least that `of` says.
auto least(const std::set<std::size_t>& kinds, const auto& of) {
  auto best = of(*kinds.begin());
  for (const std::size_t kind : kinds) best = std::min(best, of(kind));
  return best;
}

/// At no size slower than any of the paths: between two sizes of their points each one's time is a
/// line, below which a line through lower ends stays.
Path best_of(const std::vector<const Path*>& paths) {
  for (const Path* path : paths)
    if (path->links.empty()) return *path;  // takes no time
  Path best = *paths.front();
  std::set<Bytes> sizes;
  for (const Path* path : paths) {
    best.latency = std::min(best.latency, path->latency);
    for (const BandwidthCurve::Point& point : path->bandwidth.points) sizes.insert(point.size);
  }
  best.bandwidth.points.clear();
  for (const Bytes size : sizes) {
    BytesPerSecond rate{0};
    for (const Path* path : paths)
      if (path->bandwidth.at(size).value > rate.value) rate = path->bandwidth.at(size);
    best.bandwidth.points.push_back({size, rate});
  }
  return best;
}

/// Orders of devices as paths through a tree, rank by rank.
class Orders {
 public:
  Orders(const Cluster& cluster, const std::vector<Bytes>& limit,
         const std::vector<std::vector<DeviceId>>& listed)
      : cluster_(cluster), limit_(limit), listed_(listed) {}

  /// Whether every order that begins with `order` is as one of `like`, all of which begin so.
  bool all_listed(const std::vector<std::size_t>& like) {
    if (like.empty() || ++looked_at_ > kMost) return false;
    std::vector<DeviceId> tried;
    for (std::size_t d = 0; d < cluster_.devices(); ++d) {
      const DeviceId device{static_cast<std::int64_t>(d)};
      // What goes on from an interchangeable device is the same with the two exchanged.
      if (std::ranges::find(order_, device) != order_.end() ||
          std::ranges::any_of(tried, [&](DeviceId t) { return interchangeable(t, device); }))
        continue;
      tried.push_back(device);
      std::vector<std::size_t> still;
      for (const std::size_t l : like)
        if (same_at_end(device, listed_[l])) still.push_back(l);
      order_.push_back(device);
      const bool all = all_listed(still);
      order_.pop_back();
      if (!all) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMost = 1'000'000;

  bool alike(DeviceId a, DeviceId b) const {
    return cluster_.kind_of_device[a.index()] == cluster_.kind_of_device[b.index()] &&
           limit_[a.index()] == limit_[b.index()];
  }
  bool interchangeable(DeviceId a, DeviceId b) const {
    if (!alike(a, b) || cluster_.path(a, b) != cluster_.path(b, a)) return false;
    for (std::size_t d = 0; d < cluster_.devices(); ++d) {
      const DeviceId c{static_cast<std::int64_t>(d)};
      if (c != a && c != b &&
          (cluster_.path(a, c) != cluster_.path(b, c) ||
           cluster_.path(c, a) != cluster_.path(c, b)))
        return false;
    }
    return true;
  }
  /// Whether the device is to those of order_ what the next of `other` is to those before it.
  bool same_at_end(DeviceId device, const std::vector<DeviceId>& other) const {
    const DeviceId next = other[order_.size()];
    if (!alike(device, next)) return false;
    for (std::size_t r = 0; r < order_.size(); ++r)
      if (cluster_.path(order_[r], device) != cluster_.path(other[r], next) ||
          cluster_.path(device, order_[r]) != cluster_.path(next, other[r]))
        return false;
    return true;
  }

  const Cluster& cluster_;
  const std::vector<Bytes>& limit_;
  const std::vector<std::vector<DeviceId>>& listed_;
  std::vector<DeviceId> order_;
  std::size_t looked_at_ = 0;
};

}  // namespace

Certificate alike_devices(const Certificate& certificate) {
  Certificate alike = certificate;
  Cluster& cluster = alike.cluster;
  std::set<std::size_t> kinds;
  std::vector<const Path*> paths;
  for (const DeviceId a : certificate.device_of_rank) {
    kinds.insert(certificate.cluster.kind_of_device[a.index()]);
    for (const DeviceId b : certificate.device_of_rank)
      if (a != b) paths.push_back(&certificate.cluster.path(a, b));
  }
  for (Layer& layer : alike.layers.layers) {
    const auto shortest = [&](Nanoseconds LayerTimes::*work) {
      return least(kinds, [&](std::size_t kind) { return layer.times[kind].*work; });
    };
    layer.times = {{shortest(&LayerTimes::forward), shortest(&LayerTimes::backward_input),
                    shortest(&LayerTimes::backward_weight), shortest(&LayerTimes::optimizer)}};
  }
  for (LayerParameter& parameter : alike.layers.parameters)
    if (!parameter.optimizer.empty())
      parameter.optimizer = {least(kinds, [&](std::size_t k) { return parameter.optimizer[k]; })};
  DeviceKind kind;
  kind.stage_overhead =
      least(kinds, [&](std::size_t k) { return cluster.kinds[k].stage_overhead; });
  kind.iteration_overhead =
      least(kinds, [&](std::size_t k) { return cluster.kinds[k].iteration_overhead; });
  cluster.kinds = {kind};
  std::ranges::fill(cluster.kind_of_device, std::size_t{0});
  if (!paths.empty()) {
    const Path best = best_of(paths);
    for (std::size_t i = 0; i < cluster.paths.size(); ++i)
      if (i / cluster.devices() != i % cluster.devices()) cluster.paths[i] = best;
  }
  std::ranges::fill(alike.memory_limit, std::ranges::max(certificate.memory_limit));
  return alike;
}

bool shared_work_suffices(const Certificate& c, const CertifiedProof& proof) {
  constexpr Big kMostShare = Big{1} << 40, kMostWork = Big{1} << 70, kMost = Big{1} << 124;
  if (refusal(proof.spec) || proof.spec.ranks != c.device_of_rank.size() ||
      proof.shares.size() != c.cluster.devices())
    return false;
  for (const Big share : proof.shares)
    if (share < 0 || share > kMostShare) return false;
  Big work = 0, shares = 0;
  for (const DeviceId device : c.device_of_rank) shares += proof.shares[device.index()];
  for (const Layer& layer : c.layers.layers) {
    Big cheapest = kMost;
    for (const DeviceId device : c.device_of_rank) {
      const LayerTimes& t = layer.times[c.cluster.kind_of_device[device.index()]];
      const Big once =
          Big{t.forward.count()} + t.backward_input.count() + t.backward_weight.count();
      if (once > kMostWork / static_cast<Big>(proof.spec.microbatches)) return false;
      const Big time = static_cast<Big>(proof.spec.microbatches) * once + t.optimizer.count();
      cheapest = std::min(cheapest, proof.shares[device.index()] * time);
    }
    if ((work += cheapest) > kMost) return false;
  }
  return work > shares * (Big{c.bound} - 1);
}

bool every_order_listed(const Cluster& cluster, const std::vector<Bytes>& limit,
                        const std::vector<std::vector<DeviceId>>& orders) {
  std::vector<std::size_t> all;
  for (std::size_t k = 0; k < orders.size(); ++k)
    if (orders[k].size() == cluster.devices()) all.push_back(k);
  return Orders(cluster, limit, orders).all_listed(all);
}

}  // namespace pfeife::tool
