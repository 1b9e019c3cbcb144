// Synthetic layers with the shape of two models that are hard in different ways: a long chain of
// equal blocks, and a U-Net with long skips and one value that many layers read. Times are made up
// in proportion to the work of the operators; they are no profiles.
#pragma once

#include <cmath>
#include <string>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

/// Adds layers one after another and the values between them.
class LayersBuilder {
 public:
  /// A layer of `work` units that reads `from` (layer numbers) and makes a value of `bytes`.
  int add(double work, std::int64_t bytes, std::vector<int> from, std::int64_t parameters = 0) {
    const auto id = static_cast<std::int64_t>(layers_.layers.size());
    Layer layer;
    layer.name = "layer" + std::to_string(id);
    work_.push_back(work);
    layer.saved = Bytes{bytes};
    layer.weight_saved = Bytes{bytes / 2};
    layer.temporary = PassBytes::same(Bytes{bytes});
    layers_.layers.push_back(layer);
    layers_.values.push_back(
        {"value" + std::to_string(id), LayerId{id}, {}, Bytes{bytes}, Bytes{bytes}, {}});
    for (const int source : from)
      layers_.values[static_cast<std::size_t>(source)].consumers.emplace_back(id);
    if (parameters > 0)
      layers_.parameters.push_back({layer.name + ".weight",
                                    Bytes{parameters},
                                    Bytes{parameters},
                                    Bytes{2 * parameters},
                                    {LayerId{id}},
                                    {Nanoseconds{0}}});
    return static_cast<int>(id);
  }
  /// All layers with times that sum to `total_ms`, a third of it forward.
  Layers build(double total_ms) {
    double sum = 0;
    for (const double work : work_) sum += work;
    for (std::size_t l = 0; l < work_.size(); ++l) {
      const double ns = work_[l] / sum * total_ms * 1e6;
      const auto part = [&](double share) { return Nanoseconds{std::llround(ns * share)}; };
      layers_.layers[l].times = {{part(1.0 / 3), part(0.34), part(1 - 1.0 / 3 - 0.34), {}}};
    }
    std::erase_if(layers_.values, [](const LayerValue& v) { return v.consumers.empty(); });
    return std::move(layers_);
  }

 private:
  Layers layers_;
  std::vector<double> work_;
};

/// ViT-g/14 with 40 blocks: 406 layers, 101.9 ms.
inline Layers synthetic_vit() {
  LayersBuilder b;
  constexpr std::int64_t x = std::int64_t{24} * 257 * 1408 * 4, wide = x * 6144 / 1408;
  constexpr std::int64_t square = std::int64_t{1408} * 1408 * 4;
  int last = b.add(4, x, {}, 3 * 14 * 14 * 1408 * 4);
  last = b.add(1, x, {last}), last = b.add(1, x, {last}, 1408 * 257 * 4);
  for (int block = 0; block < 40; ++block) {
    int at = b.add(1.2, x, {last}, 2 * 1408 * 4);
    at = b.add(15, 3 * x, {at}, 3 * square);
    at = b.add(7, x, {at});
    at = b.add(5, x, {at}, square);
    const int sum = b.add(1.0, x, {last, at});
    at = b.add(1.2, x, {sum}, 2 * 1408 * 4);
    at = b.add(21.8, wide, {at}, square * 6144 / 1408);
    at = b.add(3.5, wide, {at});
    at = b.add(21.8, x, {at}, square * 6144 / 1408);
    last = b.add(1.0, x, {sum, at});
  }
  last = b.add(1.2, x, {last}, 2 * 1408 * 4);
  last = b.add(0.2, 24 * 1408 * 4, {last});
  b.add(0.5, 24 * 1000 * 4, {last}, 1408 * 1000 * 4);
  return b.build(101.9);
}

/// A U-Net of the size of SDXL's: about 1,600 layers, nine long skips, a time embedding and a text
/// embedding that many layers read; 209 ms.
inline Layers synthetic_unet() {
  LayersBuilder b;
  const std::int64_t full = std::int64_t{320} * 128 * 128 * 2;
  int time = b.add(0.1, 1280 * 2, {});
  time = b.add(0.3, 1280 * 2, {time}), time = b.add(0.3, 1280 * 2, {time});
  const int text = b.add(0.1, 77 * 2048 * 2, {});
  const auto residual = [&](int from, std::int64_t bytes, double work) {
    int at = b.add(1.5, bytes, {from});
    at = b.add(1.0, bytes, {at});
    at = b.add(work, bytes, {at}, bytes / 16);
    const int shift = b.add(0.2, bytes / 1000 + 64, {time});
    at = b.add(0.8, bytes, {at, shift});
    at = b.add(1.5, bytes, {at}), at = b.add(1.0, bytes, {at});
    at = b.add(work, bytes, {at}, bytes / 16);
    return b.add(0.8, bytes, {from, at});
  };
  const auto attention = [&](int from, int context, std::int64_t bytes, double work) {
    const int norm = b.add(0.8, bytes, {from});
    const int q = b.add(work, bytes, {norm}, bytes / 16);
    const int k = b.add(work, bytes, {context < 0 ? norm : context}, bytes / 16);
    const int v = b.add(work, bytes, {context < 0 ? norm : context}, bytes / 16);
    int at = b.add(2 * work, bytes, {q, k, v});
    at = b.add(work, bytes, {at}, bytes / 16);
    return b.add(0.5, bytes, {from, at});
  };
  const auto transformer = [&](int from, std::int64_t bytes, double work, int depth) {
    int at = b.add(1.0, bytes, {from});
    at = b.add(work, bytes, {at}, bytes / 16);
    for (int d = 0; d < depth; ++d) {
      at = attention(at, -1, bytes, work);
      at = attention(at, text, bytes, work * 0.8);
      int wide = b.add(0.8, bytes, {at});
      wide = b.add(8 * work, 8 * bytes, {wide}, bytes / 2);
      wide = b.add(1.5, 4 * bytes, {wide});
      at = b.add(4 * work, bytes, {wide, at}, bytes / 4);
    }
    const int out = b.add(work, bytes, {at}, bytes / 16);
    return b.add(0.5, bytes, {from, out});
  };
  std::vector<int> skips;
  int at = b.add(3, full, {}, 320 * 4 * 9 * 2);
  skips.push_back(at);
  for (int level = 0; level < 3; ++level) {
    const std::int64_t bytes = full >> level;
    for (int k = 0; k < 2; ++k) {
      at = residual(at, bytes, 14);
      if (level > 0) at = transformer(at, bytes, level == 1 ? 3 : 4, level == 1 ? 2 : 10);
      skips.push_back(at);
    }
    if (level < 2) at = b.add(5, bytes / 2, {at}, bytes / 16), skips.push_back(at);
  }
  at = residual(at, full >> 2, 14);
  at = transformer(at, full >> 2, 4, 10);
  at = residual(at, full >> 2, 14);
  for (int level = 2; level >= 0; --level) {
    const std::int64_t bytes = full >> level;
    for (int k = 0; k < 3; ++k) {
      at = b.add(0.8, 2 * bytes, {at, skips.back()});
      skips.pop_back();
      at = residual(at, bytes, 18);
      if (level > 0) at = transformer(at, bytes, level == 1 ? 3 : 4, level == 1 ? 2 : 10);
    }
    if (level > 0) at = b.add(6, 2 * bytes, {at}, bytes / 16);
  }
  at = b.add(1.5, full, {at}), at = b.add(1, full, {at}), b.add(2, full / 80, {at});
  return b.build(209);
}

/// Devices of one kind, every pair joined at the bandwidth and latency given.
inline Cluster synthetic_cluster(std::size_t devices, double gigabytes_per_s,
                                 std::int64_t latency) {
  DeviceKind kind;
  kind.memory = Bytes{std::int64_t{1} << 45};
  return uniform_cluster(devices, kind, {gigabytes_per_s * 1e9}, Nanoseconds{latency});
}

}  // namespace pfeife
