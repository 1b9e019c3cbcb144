#include "planner/ir/machine/cluster.h"

#include <algorithm>
#include <cmath>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

/// Exponent of the efficiency of matrix products smaller than the first measured size.
constexpr double kSmallProductExponent = 0.35;

/// From here on the share of the peak that fused attention reaches hardly grows.
constexpr double kLongSequence = 4096;

/// Linear in log(x) between (x0, y0) and (x1, y1).
double interpolate_log(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (std::log(x) - std::log(x0)) / (std::log(x1) - std::log(x0));
}

std::vector<DeviceId> distinct(const std::vector<DeviceId>& devices) {
  std::vector<DeviceId> found;
  for (const DeviceId device : devices)
    if (std::ranges::find(found, device) == found.end()) found.push_back(device);
  return found;
}

}  // namespace

double AttentionSpeed::at(double share, double sequence) const {
  return share * std::pow(std::min(1.0, sequence / kLongSequence), kSmallProductExponent);
}

Nanoseconds DeviceKind::operator_time() const {
  if (compute_factor == 1) return kernel_overhead;
  return nanoseconds_from_seconds(seconds(kernel_overhead) * compute_factor);
}

BytesPerSecond DeviceKind::element_wise_rate() const {
  return memory_efficiency * BytesPerSecond{memory_bandwidth.value / compute_factor};
}

FlopsPerSecond DeviceKind::peak_of(const std::string& precision) const {
  return {peak.at(precision).value / compute_factor};
}

BytesPerSecond BandwidthCurve::at(Bytes size) const {
  PFEIFE_CHECK(!points.empty(), "a bandwidth curve without points");
  if (size <= points.front().size) return points.front().rate;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point &below = points[i - 1], &above = points[i];
    if (size > above.size) continue;
    if (size == above.size) return above.rate;
    const auto bytes = [](Bytes b) { return static_cast<double>(b.value); };
    const double least = bytes(below.size) / below.rate.value;  // seconds
    const double most = bytes(above.size) / above.rate.value;
    const double share = bytes(size - below.size) / bytes(above.size - below.size);
    return {bytes(size) / (least + share * (most - least))};
  }
  return points.back().rate;
}

double EfficiencyCurve::at(Flops work) const {
  PFEIFE_CHECK(!points.empty(), "an efficiency curve without points");
  const Point &first = points.front(), &last = points.back();
  if (work.value <= 0) return first.fraction;
  if (work <= first.work)
    return first.fraction * std::pow(work.value / first.work.value, kSmallProductExponent);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point &below = points[i - 1], &above = points[i];
    if (work > above.work) continue;
    return interpolate_log(work.value, below.work.value, below.fraction, above.work.value,
                           above.fraction);
  }
  return last.fraction;
}

Nanoseconds transfer_time(const Path& path, Bytes bytes) {
  if (path.links.empty()) return Nanoseconds{0};
  if (bytes.value <= 0) return path.latency;
  return path.latency + nanoseconds_from_seconds(seconds_at(bytes, path.bandwidth.at(bytes)));
}

Nanoseconds all_reduce_time(const Cluster& cluster, const std::vector<DeviceId>& devices,
                            Bytes bytes) {
  const std::vector<DeviceId> ring = distinct(devices);
  const auto count = static_cast<std::int64_t>(ring.size());
  if (count < 2) return Nanoseconds{0};
  const Bytes piece{(bytes.value + count - 1) / count};
  Nanoseconds step{0};
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Path& path = cluster.path(ring[i], ring[(i + 1) % ring.size()]);
    step = std::max(step, transfer_time(path, piece));
  }
  return 2 * (count - 1) * step;
}

BytesPerSecond narrowest(const Cluster& cluster, const std::vector<std::size_t>& links) {
  if (links.empty()) return {};
  BytesPerSecond least = cluster.links[links.front()].bandwidth;
  for (const std::size_t link : links) least = std::min(least, cluster.links[link].bandwidth);
  return least;
}

std::vector<std::size_t> ring_links(const Cluster& cluster, DeviceId device) {
  if (cluster.rings) return (*cluster.rings)[device.index()];
  std::vector<std::size_t> out, in;
  bool first = true;
  for (std::size_t d = 0; d < cluster.devices(); ++d) {
    if (DeviceId{d} == device) continue;
    const auto keep = [&](std::vector<std::size_t>& common, const Path& path) {
      if (first) common = path.links;
      std::erase_if(common, [&](std::size_t link) {
        return std::ranges::find(path.links, link) == path.links.end();
      });
    };
    keep(out, cluster.path(device, DeviceId{d}));
    keep(in, cluster.path(DeviceId{d}, device));
    first = false;
  }
  for (const std::size_t link : in)
    if (std::ranges::find(out, link) == out.end()) out.push_back(link);
  return out;
}

Cluster uniform_cluster(std::size_t devices, const DeviceKind& kind, BytesPerSecond bandwidth,
                        Nanoseconds latency) {
  Cluster cluster;
  cluster.name = "uniform" + std::to_string(devices);
  cluster.kinds = {kind};
  cluster.kind_of_device.assign(devices, 0);
  cluster.paths.resize(devices * devices);
  for (std::size_t from = 0; from < devices; ++from) {
    for (std::size_t to = 0; to < devices; ++to) {
      if (from == to) continue;
      const std::string name = std::to_string(from) + ">" + std::to_string(to);
      cluster.paths[from * devices + to] = {
          {cluster.links.size()}, latency, BandwidthCurve{{{Bytes{1}, bandwidth}}}};
      cluster.links.push_back({name, bandwidth});
    }
  }
  return cluster;
}

}  // namespace pfeife
