// What a card does: products by size and shape, streaming kernels, launches; and the cluster file
// that follows, with where each figure comes from.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <sstream>

#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/basics/error.h"
#include "runtime/device/machine.h"
#include "tests/gpu/card/probe.h"

namespace pfeife::card {
namespace {

using nlohmann::json;

struct Unit {
  const char* name;
  at::ScalarType type;
  bool tf32;
};
constexpr Unit kUnits[] = {{"fp32", at::kFloat, false},
                           {"tf32", at::kFloat, true},
                           {"bf16", at::kBFloat16, false},
                           {"fp16", at::kHalf, false}};

/// FLOP/s of [m, k] x [k, n] on random numbers.
double product_rate(const Probe& probe, const Unit& unit, std::array<std::int64_t, 3> shape) {
  const auto [m, k, n] = shape;
  allow_tf32(unit.tf32);
  const auto options = at::TensorOptions().device(probe.device);
  const at::Tensor a = at::randn({m, k}, at::kFloat).to(options.dtype(unit.type));
  const at::Tensor b = at::randn({k, n}, at::kFloat).to(options.dtype(unit.type));
  at::Tensor out = at::empty({m, n}, options.dtype(unit.type));
  const Nanoseconds time = time_of(probe.device, [&] { at::mm_out(out, a, b); });
  allow_tf32(false);
  return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) /
         seconds(time);
}

/// Squares for the curve; then the shapes of linear layers: [tokens, in, out].
std::vector<std::array<std::int64_t, 3>> squares(bool small) {
  std::vector<std::array<std::int64_t, 3>> shapes;
  for (const std::int64_t n : {64, 128, 256, 512, 1024, 2048, 4096, 8192})
    if (small ? n <= 128 : n >= 256) shapes.push_back({n, n, n});
  return shapes;
}
std::vector<std::array<std::int64_t, 3>> linear_shapes(bool small) {
  if (small) return {{128, 64, 256}, {16, 256, 256}};
  return {{1024, 1280, 3840},  {1024, 1280, 5120},  {1024, 5120, 1280}, {1024, 1280, 50257},
          {6168, 1408, 4224},  {6168, 1408, 6144},  {6168, 6144, 1408}, {1024, 4096, 4096},
          {1024, 4096, 11008}, {4096, 4096, 32000}, {32, 4096, 4096},   {8192, 64, 8192},
          {64, 8192, 64}};
}

json streaming(const Probe& probe) {
  json rows = json::array();
  const auto measure = [&](const char* what, std::int64_t elements, double bytes_each,
                           const std::function<void()>& work) {
    const double bytes = bytes_each * static_cast<double>(elements);
    const Nanoseconds time = time_of(probe.device, work);
    rows.push_back({{"kernel", what}, {"bytes", bytes}, {"gb_per_s", bytes / 1e9 / seconds(time)}});
  };
  const std::vector<std::int64_t> sizes =
      probe.stand_in ? std::vector<std::int64_t>{1 << 12}
                     : std::vector<std::int64_t>{1 << 18, 1 << 22, 1 << 26};
  for (const std::int64_t rows_of_1024 : sizes) {
    const std::int64_t n = rows_of_1024, width = 1024;
    const at::Tensor x = at::randn({n / width, width}, at::kFloat).to(probe.device);
    const at::Tensor half = x.to(at::kBFloat16), weight = at::ones({width}, x.options());
    at::Tensor out = at::empty_like(x);
    measure("copy float32", n, 8, [&] { out.copy_(x); });
    measure("add float32", n, 12, [&] { at::add_out(out, x, x); });
    measure("gelu float32", n, 8, [&] { at::gelu_out(out, x); });
    measure("layer_norm float32", n, 8, [&] { at::layer_norm(x, {width}, weight, weight); });
    measure("softmax float32", n, 8, [&] { at::softmax(x, -1); });
    measure("cast to bfloat16", n, 6, [&] { x.to(at::kBFloat16); });
    measure("add bfloat16", n, 6, [&] { half + half; });
    measure("sum float32", n, 4, [&] { x.sum(); });
  }
  return rows;
}

/// Time of an operator on one number: of the host alone, and until the device has done them all.
json launches(const Probe& probe) {
  const int count = probe.stand_in ? 100 : 2000;
  const auto time = [&](const std::function<void()>& work) {
    work();
    finish(probe.device);
    const Nanoseconds begin = now();
    work();
    const Nanoseconds given = now();
    finish(probe.device);
    return json{{"host_us", 1e3 * milliseconds(given - begin) / count},
                {"done_us", 1e3 * milliseconds(now() - begin) / count}};
  };
  const at::Tensor one = at::ones({1}, probe.device);
  const at::Tensor leaf = at::ones({1}, probe.device).set_requires_grad(true);
  return {{"operator", time([&] {
             for (int i = 0; i < count; ++i) one.neg();
           })},
          {"operator and its backward", time([&] {
             at::Tensor y = leaf;
             for (int i = 0; i < count; ++i) y = y.neg();
             torch::autograd::backward({y}, {at::ones({1}, probe.device)});
           })},
          {"event", time([&] {
             c10::Event event(probe.device.type());
             const c10::impl::VirtualGuardImpl guard(probe.device.type());
             for (int i = 0; i < count; ++i) event.record(guard.getStream(probe.device));
           })}};
}

std::int64_t card_memory(const Probe& probe) {
  const auto [free, total] =
      c10::getDeviceAllocator(probe.device.type())->getMemoryInfo(probe.device.index());
  return static_cast<std::int64_t>(total);
}

/// A cluster of one device. `answer` holds what was measured.
std::string cluster_yaml(const Probe& probe, const json& answer) {
  std::ostringstream out;
  out.precision(4);
  const std::string origin =
      probe.stand_in ? "on the stand-in, whose times mean nothing" : where_and_when(probe.device);
  out << "# Written by tests/gpu/on_card: measured " << origin << ".\nversion: 1\nname: this_card\n"
      << "notes: [\"measured " << origin << "; peaks are the best product measured\"]\n"
      << "device_kinds:\n  card:\n    memory: " << answer["memory"].get<std::int64_t>() / (1 << 20)
      << " MiB   # as the driver reports it\n    memory_bandwidth: "
      << answer["bandwidth"].get<double>() / 1e9
      << " GB/s   # the fastest copy, read and written\n    memory_efficiency: 1\n    peak: {";
  std::string comma, curves;
  for (const auto& [name, rows] : answer["squares"].items()) {
    double best = 0;
    for (const json& row : rows) best = std::max(best, row["flops"].get<double>());
    out << comma << name << ": " << best / 1e12 << " TFLOP/s";
    comma = ", ";
    std::ostringstream curve;
    curve.precision(4);
    for (const json& row : rows) {
      const double n = row["shape"][0].get<double>();
      curve << (curve.str().empty() ? "" : ", ") << "[" << 2 * n * n * n / 1e9 << " GFLOP, "
            << row["flops"].get<double>() / best << "]";
    }
    curves += "      " + name + ": [" + curve.str() + "]\n";
  }
  out << "}   # the best of the square products\n    gemm_efficiency:\n"
      << curves << "    kernel_overhead: "
      << std::llround(1e3 * answer["launches"]["operator"]["done_us"].get<double>())
      << " ns   # an operator on one number, one after another\n"
      << "devices: [{kind: card, count: 1}]\n";
  return out.str();
}

}  // namespace

void probe_speed(const Probe& probe) {
  json answer;
  answer["memory"] = card_memory(probe);
  answer["launches"] = launches(probe);
  answer["streaming"] = streaming(probe);
  double bandwidth = 0;
  for (const json& row : answer["streaming"])
    if (row["kernel"] == "copy float32")
      bandwidth = std::max(bandwidth, 1e9 * row["gb_per_s"].get<double>());
  answer["bandwidth"] = bandwidth;
  probe.write(answer);
  for (const auto& [key, shapes] :
       {std::pair{"squares", squares(probe.stand_in)}, {"shapes", linear_shapes(probe.stand_in)}})
    for (const Unit& unit : kUnits) {
      for (const auto& shape : shapes)
        answer[key][unit.name].push_back(
            {{"shape", shape}, {"flops", product_rate(probe, unit, shape)}});
      probe.write(answer);
    }
  const std::string text = cluster_yaml(probe, answer);
  parse_cluster(text, "cluster");  // what cannot be read is not written
  write_file(probe.cluster, text);
}

}  // namespace pfeife::card
