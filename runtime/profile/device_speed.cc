#include "runtime/profile/device_speed.h"

#include <algorithm>

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

}  // namespace pfeife
