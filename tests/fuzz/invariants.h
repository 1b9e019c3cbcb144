// What must hold of values that a reader accepts, whatever the bytes were.
#pragma once

#include <algorithm>
#include <cstdint>

#include "planner/ir/basics/error.h"
#include "planner/ir/model/graph.h"
#include "planner/ir/model/layers.h"

namespace pfeife {

inline void check_invariants(const Graph& graph) {
  const auto known = [&](ValueId id) { return id.index() < graph.values.size(); };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : inputs_of(graph.nodes[n])) {
      PFEIFE_CHECK(known(id));
      PFEIFE_CHECK(!graph.value(id).producer || graph.value(id).producer->index() < n);
    }
    for (const ValueId id : graph.nodes[n].outputs)
      PFEIFE_CHECK(known(id) && graph.value(id).producer == NodeId{n});
  }
  Bytes sum{0};
  for (const Value& value : graph.values) {
    PFEIFE_CHECK(value.type.bytes() >= Bytes{0} &&
                 value.type.sizes.size() == value.type.strides.size());
    sum += value.type.bytes();
    PFEIFE_CHECK(sum >= Bytes{0}, "bytes overflow");
  }
  PFEIFE_CHECK(!graph.outputs.empty() && std::ranges::all_of(graph.outputs, known));
  PFEIFE_CHECK(!to_string(graph).empty());
}

inline void check_invariants(const Layers& layers) {
  PFEIFE_CHECK(layers.size() > 0);
  Nanoseconds time{0};
  for (const Layer& layer : layers.layers) {
    const LayerTimes& times = layer.times.at(0);
    for (const Nanoseconds part :
         {times.forward, times.backward_input, times.backward_weight, times.optimizer})
      PFEIFE_CHECK(part >= Nanoseconds{0} && (time += part) >= Nanoseconds{0});
    PFEIFE_CHECK(std::min({layer.saved, layer.weight_saved, layer.temporary.smallest()}) >=
                 Bytes{0});
  }
  for (const LayerValue& value : layers.values) {
    PFEIFE_CHECK(!value.consumers.empty() && value.producer < value.consumers.front());
    PFEIFE_CHECK(value.consumers.back().index() < layers.size());
    PFEIFE_CHECK(std::ranges::adjacent_find(value.consumers, std::ranges::greater_equal()) ==
                 value.consumers.end());
    PFEIFE_CHECK(value.bytes >= Bytes{0});
  }
}

/// An array whose elements lie in a file of `file_bytes`.
inline void check_in_file(DType dtype, const std::vector<std::int64_t>& sizes, std::uint64_t begin,
                          std::uint64_t bytes, std::uint64_t file_bytes) {
  PFEIFE_CHECK(begin <= file_bytes && bytes <= file_bytes - begin);
  unsigned __int128 needed = static_cast<unsigned __int128>(element_size(dtype).value);
  for (const std::int64_t size : sizes) {
    PFEIFE_CHECK(size >= 0);
    needed *= static_cast<std::uint64_t>(size);
    PFEIFE_CHECK(needed >> 64 == 0);
  }
  PFEIFE_CHECK(needed == bytes);
}

}  // namespace pfeife
