#include "planner/search/joint/class_digest.h"

#include <bit>

#include "planner/ir/error.h"

namespace pfeife {
namespace {

/// FNV-1a.
class Digest {
 public:
  void add(std::string_view text) {
    for (const char letter : text) add_byte(static_cast<unsigned char>(letter));
  }
  void add(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    for (int shift = 0; shift < 64; shift += 8) add_byte((bits >> shift) & 0xff);
  }
  void add(Nanoseconds time) { add(std::int64_t{time.count()}); }
  void add(Bytes bytes) { add(bytes.value); }
  void add(BytesPerSecond rate) { add(std::bit_cast<std::int64_t>(rate.value)); }
  void add(bool yes) { add(std::int64_t{yes}); }
  void add(LayerId layer) { add(std::int64_t{layer.value}); }
  void add(const PassBytes& bytes) {
    each(bytes.forward, bytes.backward, bytes.input, bytes.weight);
  }
  void add(const LayerTimes& t) {
    each(t.forward, t.backward_input, t.backward_weight, t.optimizer);
  }
  void add(const BandwidthCurve::Point& point) { each(point.size, point.rate); }
  template <class T>
  void add(const std::vector<T>& values) {
    add(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) add(value);
  }
  void each(const auto&... values) { (add(values), ...); }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(std::uint64_t byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 1469598103934665603ULL;
};

}  // namespace

std::uint64_t digest(std::span<const ScheduleSpec> schedules) {
  Digest digest;
  for (const ScheduleSpec& spec : schedules)
    digest.add(stream_all(spec.family, ' ', spec.ranks, ' ', spec.microbatches, ' ', spec.loops,
                          ' ', knobs(spec), '\n'));
  return digest.value();
}

std::uint64_t cost_digest(const Problem& problem) {
  Digest digest;
  const Layers& layers = problem.layers;
  const Cluster& cluster = problem.cluster;
  for (const DeviceId device : problem.device_of_rank) {
    const std::size_t kind = cluster.kind_of_device[device.index()];
    for (const Layer& layer : layers.layers) digest.add(layer.times[kind]);
    for (const LayerParameter& parameter : layers.parameters)
      if (!parameter.optimizer.empty()) digest.add(parameter.optimizer[kind]);
    digest.each(cluster.kinds[kind].stage_overhead, cluster.kinds[kind].iteration_overhead);
    for (const DeviceId other : problem.device_of_rank) {
      const Path& path = cluster.path(device, other);
      digest.each(path.links.empty(), path.latency, path.bandwidth.points);
    }
  }
  for (const Layer& layer : layers.layers)
    digest.each(layer.no_cut_after.empty(), layer.saved, layer.weight_saved, layer.temporary);
  for (const LayerValue& v : layers.values)
    digest.each(v.producer, v.consumers, v.bytes, v.gradient_bytes,
                v.transfer_time.value_or(Nanoseconds{-1}));
  for (const LayerStorage& storage : layers.storages)
    digest.each(storage.bytes, storage.savers, storage.weight_savers,
                static_cast<std::int64_t>(storage.value.value_or(layers.values.size())));
  for (const LayerParameter& p : layers.parameters)
    digest.each(p.bytes, p.gradient, p.state, p.users);
  return digest.value();
}

}  // namespace pfeife
