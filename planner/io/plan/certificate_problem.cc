#include "planner/io/plan/certificate_problem.h"

#include <algorithm>

namespace pfeife {

/// Between its points a curve's times are linear (BandwidthCurve::at).
static bool takes_longer_for_more(const BandwidthCurve& curve) {
  const auto seconds = [](const BandwidthCurve::Point& point) {
    return static_cast<double>(point.size.value) / point.rate.value;
  };
  const auto rates = [](const BandwidthCurve::Point& point) {
    return point.rate.value > 0 && point.size >= Bytes{0};
  };
  const auto out_of_order = [&](const BandwidthCurve::Point& a, const BandwidthCurve::Point& b) {
    return a.size >= b.size || seconds(a) > seconds(b);
  };
  return !curve.points.empty() && std::ranges::all_of(curve.points, rates) &&
         std::ranges::adjacent_find(curve.points, out_of_order) == curve.points.end();
}

/// Whether all times of a step or all bytes together may be 2^53 or more, whatever the cuts: else
/// nothing that is computed of them runs over.
static bool is_too_large(const Certificate& c) {
  double passes = 2, time = 0, bytes = 0, sent = 0, slowest = 1e9, latency = 0;
  const auto ns = [](auto... times) { return (static_cast<double>(times.count()) + ...); };
  const auto size = [](auto... all) { return (static_cast<double>(all.value) + ...); };
  for (const CertifiedProof& proof : c.proofs)
    passes = std::max(passes, 2.0 * static_cast<double>(proof.spec.microbatches));
  for (const Layer& l : c.layers.layers) {
    for (const LayerTimes& t : l.times)
      time += ns(t.forward, t.backward_input, t.backward_weight, t.optimizer);
    bytes += size(l.saved, l.weight_saved, l.temporary.forward, l.temporary.backward,
                  l.temporary.input, l.temporary.weight);
  }
  for (const LayerStorage& s : c.layers.storages) bytes += size(s.bytes);
  for (const LayerParameter& p : c.layers.parameters) {
    bytes += size(p.bytes, p.gradient, p.state, p.exchanged);
    for (const Nanoseconds t : p.optimizer) time += ns(t);
  }
  for (const LayerReduction& r : c.layers.reductions) time += ns(r.time, r.beside);
  for (const Path& path : c.cluster.paths) {
    latency = std::max(latency, ns(path.latency));
    for (const BandwidthCurve::Point& point : path.bandwidth.points)
      slowest = std::min(slowest, point.rate.value);
  }
  for (const LayerValue& v : c.layers.values) {
    const double messages = static_cast<double>(v.consumers.size());
    sent += messages * size(v.bytes, v.gradient_bytes);
    time += messages * (latency + (v.transfer_time ? ns(*v.transfer_time) : 0));
  }
  for (const DeviceKind& kind : c.cluster.kinds) {
    time += static_cast<double>(c.layers.size()) * ns(kind.stage_overhead) +
            ns(kind.iteration_overhead) +
            2.0 * static_cast<double>(c.layers.parameters.size()) * ns(kind.kernel_overhead);
    if (const double rate = kind.memory_efficiency * kind.memory_bandwidth.value; rate > 0)
      time += 3 * bytes / rate * 1e9;
  }
  if (c.norm != StepNorm::None)
    time += 2 * static_cast<double>(c.device_of_rank.size()) * (latency + 8 / slowest * 1e9);
  time += sent / slowest * 1e9;
  return !(std::max(time, bytes + sent) * passes < 9007199254740992.0);
}

std::string problem_fault(const Certificate& c) {
  const auto count = static_cast<std::int64_t>(c.layers.size());
  const auto wrong = [&](const std::vector<LayerId>& ids) {
    return std::ranges::any_of(ids, [&](LayerId l) { return l.value < 0 || l.value >= count; }) ||
           std::ranges::adjacent_find(ids, std::ranges::greater_equal{}) != ids.end();
  };
  const auto negative = [](auto... amounts) { return ((amounts < decltype(amounts){0}) || ...); };
  const std::size_t kinds = c.cluster.kinds.size(), devices = c.cluster.devices();
  if (count == 0) return "no layers";
  for (const Layer& l : c.layers.layers) {
    if (l.times.size() != kinds) return "a layer without the times of every device kind";
    for (const LayerTimes& t : l.times)
      if (negative(t.forward, t.backward_input, t.backward_weight, t.optimizer))
        return "a negative time";
    if (negative(l.saved, l.weight_saved, l.temporary.smallest())) return "a negative amount";
  }
  for (const LayerValue& v : c.layers.values)
    if (v.producer.value < 0 || v.consumers.empty() || wrong(v.consumers) ||
        v.producer >= v.consumers.front() || negative(v.bytes, v.gradient_bytes))
      return "a value that is read before it is made";
  for (const LayerStorage& s : c.layers.storages)
    if (wrong(s.savers) || wrong(s.weight_savers) || negative(s.bytes) ||
        (s.value && *s.value >= c.layers.values.size()))
      return "a storage that points to nothing";
  for (const LayerParameter& p : c.layers.parameters)
    if (wrong(p.users) || negative(p.bytes, p.gradient, p.state, p.exchanged) ||
        (!p.optimizer.empty() && p.optimizer.size() != kinds) ||
        std::ranges::any_of(p.optimizer, [&](Nanoseconds t) { return negative(t); }))
      return "a parameter that points to nothing";
  if (!c.layers.reductions.empty() && c.layers.reductions.size() != c.layers.size())
    return "reductions of other layers";
  for (const LayerReduction& r : c.layers.reductions)
    if (negative(r.time, r.beside)) return "a negative reduction";
  for (const std::size_t kind : c.cluster.kind_of_device)
    if (kind >= kinds) return "a device of no kind";
  for (const DeviceKind& kind : c.cluster.kinds)
    if (negative(kind.stage_overhead, kind.iteration_overhead, kind.kernel_overhead))
      return "a negative overhead";
  for (const DeviceKind& kind : c.cluster.kinds)
    if (kind.type > DeviceType::Cpu || !(kind.memory_bandwidth.value >= 0) ||
        !(kind.memory_efficiency > 0))
      return "a device of no speed";
  if (c.cluster.paths.size() != devices * devices) return "devices without a path";
  for (const Path& path : c.cluster.paths) {
    if (negative(path.latency)) return "a negative latency";
    if (!path.links.empty() && !takes_longer_for_more(path.bandwidth))
      return "a path without a rate, or one that takes less time for more bytes";
  }
  for (const DeviceId d : c.device_of_rank)
    if (d.value < 0 || d.index() >= devices) return "a rank without a device";
  if (c.memory_limit.size() != c.device_of_rank.size()) return "a rank without a memory limit";
  if (c.recompute > Recompute::Choose) return "a way to recompute that there is not";
  if (c.layers.mode > Mode::Forward) return "a mode that there is not";
  if (c.norm > StepNorm::Clipped) return "optimizer steps that wait for what there is not";
  if (is_too_large(c)) return "times or bytes of 2^53 or more together";
  return "";
}

}  // namespace pfeife
