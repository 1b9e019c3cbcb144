// Random models with branches, of which many stages send nothing to their neighbours.
#pragma once

#include <random>
#include <set>

#include "planner/ir/model/layers.h"

namespace pfeife {

/// Towers of a few layers, each of which may skip some; what they make is joined, and a tail
/// follows. One or two layers are much heavier than the others; some values have no gradient.
inline Layers branching_layers(std::mt19937& random, std::size_t most) {
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  std::set<std::pair<std::size_t, std::size_t>> reads;  // from, to
  std::vector<std::size_t> ends;
  std::size_t count = 0;
  const std::size_t towers = 1 + below(3);
  for (std::size_t t = 0; t < towers && count + 1 < most; ++t) {
    const std::size_t first = count, length = 1 + below(3);
    for (std::size_t k = 0; k < length && count + 1 < most; ++k, ++count) {
      if (count > first) reads.insert({count - 1, count});
      if (count > first + 1 && below(3) == 0) reads.insert({first + below(count - first), count});
      if (count == first && first > 0 && below(3) == 0) reads.insert({below(first), count});
    }
    ends.push_back(count - 1);
  }
  for (const std::size_t end : ends) reads.insert({end, count});
  for (++count; count < most; ++count) {
    if (below(6) > 0) reads.insert({count - 1, count});
    if (below(3) == 0) reads.insert({below(count), count});
  }
  Layers layers;
  for (std::size_t l = 0; l < count; ++l) {
    const auto ns = [&](std::size_t end) {
      return Nanoseconds{static_cast<std::int64_t>(1 + below(end))};
    };
    Layer layer;
    layer.name = "l" + std::to_string(l);
    layer.times = {{ns(5), ns(5), Nanoseconds{static_cast<std::int64_t>(below(4))}, ns(2)}};
    if (below(4) == 0) layer.times[0].forward *= 20;
    if (below(6) == 0) layer.times[0].backward_input *= 20;
    layers.layers.push_back(layer);
    LayerValue value{"v", LayerId{l}, {}, Bytes{8}, Bytes{8}, {}};
    for (const auto& [from, to] : reads)
      if (from == l) value.consumers.emplace_back(static_cast<std::int64_t>(to));
    if (below(10) == 0) value.gradient_bytes = Bytes{0}, value.has_gradient = false;
    if (!value.consumers.empty()) layers.values.push_back(value);
  }
  return layers;
}

}  // namespace pfeife
