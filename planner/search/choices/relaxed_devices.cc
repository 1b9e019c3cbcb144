#include "planner/search/choices/relaxed_devices.h"

#include <algorithm>
#include <set>

#include "planner/search/bound/proof_record.h"

namespace pfeife {

/// Of all paths at once the shortest time at every size: between two sizes every curve is a line,
/// so the line through the maxima is above all of them.
static Path best_of(const std::vector<const Path*>& paths) {
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

RelaxedDevices::RelaxedDevices(const Problem& problem)
    : given_(problem), layers_(problem.layers), cluster_(problem.cluster) {
  const std::size_t kind = fastest_kind();
  const std::size_t old = problem.cluster.devices(), all = old + problem.device_of_rank.size();
  cluster_.kind_of_device.resize(all, kind);
  std::vector<const Path*> between;
  for (const DeviceId a : problem.device_of_rank)
    for (const DeviceId b : problem.device_of_rank)
      if (a != b) between.push_back(&problem.cluster.path(a, b));
  cluster_.paths.assign(all * all, between.empty() ? Path{} : best_of(between));
  for (std::size_t a = 0; a < all; ++a) {
    cluster_.paths[a * all + a] = Path{};
    for (std::size_t b = 0; a < old && b < old; ++b)
      cluster_.paths[a * all + b] = problem.cluster.paths[a * old + b];
  }
}

/// As fast as the fastest of them all; a new one of the cluster if they are of several.
std::size_t RelaxedDevices::fastest_kind() {
  std::set<std::size_t> kinds;
  for (const DeviceId device : given_.device_of_rank)
    kinds.insert(cluster_.kind_of_device[device.index()]);
  if (kinds.size() == 1) return *kinds.begin();
  const auto least = [&](const auto& of_kind) {
    auto best = of_kind(*kinds.begin());
    for (const std::size_t kind : kinds) best = std::min(best, of_kind(kind));
    return best;
  };
  for (Layer& layer : layers_.layers) {
    const auto fastest = [&](Nanoseconds LayerTimes::*work) {
      return least([&](std::size_t kind) { return layer.times[kind].*work; });
    };
    layer.times.push_back({fastest(&LayerTimes::forward), fastest(&LayerTimes::backward_input),
                           fastest(&LayerTimes::backward_weight), fastest(&LayerTimes::optimizer)});
  }
  for (LayerParameter& parameter : layers_.parameters)
    if (!parameter.optimizer.empty())
      parameter.optimizer.push_back(
          least([&](std::size_t kind) { return parameter.optimizer[kind]; }));
  DeviceKind best = cluster_.kinds[*kinds.begin()];
  best.stage_overhead = least([&](std::size_t k) { return cluster_.kinds[k].stage_overhead; });
  best.iteration_overhead =
      least([&](std::size_t k) { return cluster_.kinds[k].iteration_overhead; });
  cluster_.kinds.push_back(std::move(best));
  return cluster_.kinds.size() - 1;
}

Problem RelaxedDevices::problem() const {
  Problem relaxed{layers_,     cluster_,           given_.schedules, {}, given_.memory_limit,
                  given_.cuts, given_.memory_rule, given_.recompute};
  for (std::size_t d = given_.cluster.devices(); d < cluster_.devices(); ++d)
    relaxed.device_of_rank.emplace_back(static_cast<std::int64_t>(d));
  std::ranges::fill(relaxed.memory_limit, std::ranges::max(relaxed.memory_limit));
  return relaxed;
}

Certificate RelaxedDevices::beside_each_other(Certificate certificate, bool relaxed) const {
  Problem both = problem();
  both.device_of_rank.insert(both.device_of_rank.end(), given_.device_of_rank.begin(),
                             given_.device_of_rank.end());
  certificate.cluster = certificate_of(both, 1, {}).cluster;
  for (std::size_t l = 0; l < layers_.size(); ++l)
    certificate.layers.layers[l].times = layers_.layers[l].times;
  for (std::size_t p = 0; p < layers_.parameters.size(); ++p)
    certificate.layers.parameters[p].optimizer = layers_.parameters[p].optimizer;
  if (relaxed)  // numbered behind the given ones
    for (DeviceId& device : certificate.device_of_rank)
      device.value += static_cast<std::int32_t>(given_.device_of_rank.size());
  return certificate;
}

}  // namespace pfeife
