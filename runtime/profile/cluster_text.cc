
#include "runtime/profile/cluster_text.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "runtime/device/device.h"
#include "runtime/profile/statistics.h"
#include "runtime/transport/transport.h"

namespace pfeife {
namespace {

constexpr std::int64_t kProductSizes[] = {64, 128, 256, 512, 1024};
constexpr Nanoseconds kFill = std::chrono::milliseconds(20);
constexpr int kRepetitions = 7;

/// Median time of one run of `work`, each measured over as many as fill 20 ms.
template <class Work>
Nanoseconds time_of(at::Device device, const Work& work) {
  const auto run = [&](std::int64_t count) {
    const Nanoseconds begin = now();
    for (std::int64_t i = 0; i < count; ++i) work();
    finish(device);
    return (now() - begin) / count;
  };
  run(2);  // chooses kernels, fills caches
  const std::int64_t count = std::max<std::int64_t>(1, kFill / std::max(run(1), Nanoseconds{1}));
  std::vector<Nanoseconds> times;
  for (int i = 0; i < kRepetitions; ++i) times.push_back(run(count));
  return std::max(median(std::move(times)), Nanoseconds{1});
}

double product_rate(std::int64_t size, const at::TensorOptions& options) {
  const at::Tensor a = at::randn({size, size}, options.dtype(at::kFloat)).to(options.dtype());
  const at::Tensor b = at::randn({size, size}, options.dtype(at::kFloat)).to(options.dtype());
  at::Tensor out = at::empty({size, size}, options);
  const double n = static_cast<double>(size);
  return 2 * n * n * n / seconds(time_of(options.device(), [&] { at::mm_out(out, a, b); }));
}

void measure_products(DeviceKind& kind, const std::string& precision,
                      const at::TensorOptions& options) {
  std::vector<double> rates;
  for (const std::int64_t size : kProductSizes) rates.push_back(product_rate(size, options));
  const double best = std::ranges::max(rates);
  kind.peak[precision] = {best};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const double n = static_cast<double>(kProductSizes[i]);
    kind.gemm_efficiency[precision].points.push_back({{2 * n * n * n}, rates[i] / best});
  }
}

/// Forward and backward of an operator on one number.
Nanoseconds operator_cost(at::Device device) {
  constexpr int kLength = 200;
  const Nanoseconds chain = time_of(device, [&] {
    at::Tensor x = at::zeros({1}, device).set_requires_grad(true), y = x;
    for (int i = 0; i < kLength; ++i) y = y.neg();
    torch::autograd::backward({y}, {at::ones({1}, device)});
  });
  return chain / (2 * kLength);
}

std::string number(double value, const char* unit) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g%s", value, unit);
  return text;
}

void write_kind(std::ostream& out, const DeviceKind& kind) {
  out << "  " << kind.name << ":\n"
      << (kind.type == DeviceType::Cpu ? "    type: cpu\n" : "")
      << "    memory: " << kind.memory.value / kMiB.value
      << " MiB   # the machine's, shared evenly\n"
      << "    memory_bandwidth: " << number(kind.memory_bandwidth.value / 1e9, " GB/s")
      << "   # read and written by a copy of 64 MiB\n"
      << "    memory_efficiency: " << number(kind.memory_efficiency, "") << "\n    peak: {";
  std::string comma;
  for (const auto& [precision, peak] : kind.peak) {
    out << comma << precision << ": " << number(peak.value / 1e9, " GFLOP/s");
    comma = ", ";
  }
  out << "}   # the best of the products below\n    gemm_efficiency:\n";
  for (const auto& [precision, curve] : kind.gemm_efficiency) {
    out << "      " << precision << ": [";
    comma.clear();
    for (const auto& point : curve.points) {
      out << comma << "[" << number(point.work.value / 1e9, " GFLOP") << ", "
          << number(point.fraction, "") << "]";
      comma = ", ";
    }
    out << "]\n";
  }
  out << "    kernel_overhead: " << kind.kernel_overhead.count()
      << " ns   # an operator on one number, autograd included\n";
}

/// Without points that noise made as fast as a smaller one: larger messages do not take less time.
void write_bandwidth(std::ostream& out, const LinkMeasurement& link) {
  std::string comma;
  double longest = 0;  // after the latency, of the points written
  for (const LinkPoint& point : link.points) {
    const auto time = static_cast<double>((point.one_way - link.latency).count());
    if (!comma.empty() && time < 1.01 * longest) continue;
    longest = std::max(time, 1.0);
    out << comma << "[" << point.bytes.value / kKiB.value << " KiB, "
        << number(rate(point, point.one_way, link.latency).value / 1e9, " GB/s") << "]";
    comma = ", ";
  }
}

}  // namespace

DeviceKind measure_device(const std::string& name, at::Device device,
                          const std::function<void(const std::string&)>& progress) {
  DeviceKind kind;
  kind.name = name;
  kind.type = device.is_cpu() ? DeviceType::Cpu : DeviceType::Gpu;
  const at::TensorOptions options = at::TensorOptions().device(device);
  if (progress) progress("device: products in fp32");
  measure_products(kind, "fp32", options.dtype(at::kFloat));
  if (progress) progress("device: products in bf16");
  measure_products(kind, "bf16", options.dtype(at::kBFloat16));
  if (progress) progress("device: copies and small operators");
  const at::Tensor from = at::ones({std::int64_t{16} << 20}, options);
  at::Tensor to = at::empty_like(from);
  const Nanoseconds copy = time_of(device, [&] { to.copy_(from); });
  kind.memory_bandwidth = {2 * static_cast<double>(from.nbytes()) / seconds(copy)};
  kind.memory_efficiency = 1;  // the bandwidth is what a copy reaches
  kind.kernel_overhead = operator_cost(device);
  return kind;
}

std::string cluster_text(const std::string& name, const DeviceKind& kind, std::size_t devices,
                         const LinkMeasurement& link, const std::string& origin) {
  std::ostringstream out;
  out << "# Written by `pfeife-run profile --links`: measured " << origin << ".\n"
      << "version: 1\nname: " << name << "\nnotes: [\"measured " << origin << "\"]\n"
      << "device_kinds:\n";
  write_kind(out, kind);
  out << "devices: [{kind: " << kind.name << ", count: " << devices << "}]\nlinks:\n"
      << "  # message, ms alone, ms with another one going the other way:\n";
  for (const LinkPoint& point : link.points) {
    char line[100];
    std::snprintf(line, sizeof line, "  #   %6lld KiB  %9.4f  %9.4f\n",
                  static_cast<long long>(point.bytes.value / kKiB.value),
                  milliseconds(point.one_way), milliseconds(point.both));
    out << line;
  }
  out << "  - {name: socket, between: [";
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = a + 1; b < devices; ++b)
      out << (a + b > 1 ? ", " : "") << "[" << a << ", " << b << "]";
  out << "],\n     bandwidth: [";
  write_bandwidth(out, link);
  out << "],\n     latency: " << link.latency.count()
      << " ns, duplex: " << (link.half_duplex() ? "half" : "full") << "}\n"
      << "routes:\n  - {over: socket}\n";
  return out.str();
}

}  // namespace pfeife
