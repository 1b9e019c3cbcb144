#include "planner/mesh/sharded_parameters.h"

#include <algorithm>
#include <array>
#include <vector>

#include "planner/mesh/repeat_layer.h"

namespace pfeife {
namespace {

struct Unit {
  std::size_t first = 0, last = 0;  ///< layers
  std::array<Bytes, 2> parameters;  ///< dense, of experts
};

std::vector<Unit> units_of(const MeshLayers& pieces) {
  std::vector<Unit> units;
  std::vector<std::size_t> unit_of;  // [layer]
  const std::size_t layers = pieces.layers.size();
  for (std::size_t l = 0; l < layers;) {
    const bool transformer = l > 0 && l + 1 < layers;
    const std::size_t next = l + (transformer ? kPiecesOfLayer : 1);
    units.push_back({.first = l, .last = next - 1});
    unit_of.resize(next, units.size() - 1);
    l = next;
  }
  for (std::size_t p = 0; p < pieces.of_experts.size(); ++p) {
    std::vector<std::size_t> counted;
    for (const LayerId user : pieces.layers.parameters[p].users) {
      const std::size_t unit = unit_of[user.index()];
      if (std::ranges::find(counted, unit) != counted.end()) continue;
      counted.push_back(unit);
      units[unit].parameters[pieces.of_experts[p] ? 1 : 0] += pieces.layers.parameters[p].bytes;
    }
  }
  return units;
}

ShardedUnit sharded(const Unit& unit, const MeshLayers& pieces, const MeshRun& run,
                    const Network& network) {
  ShardedUnit result;
  for (const bool experts : {false, true}) {
    const Bytes bytes = unit.parameters[experts ? 1 : 0];
    if (bytes == Bytes{0}) continue;
    const GroupShape group = gradient_group(run, experts, network);
    const Bytes gradients{bytes.value / element_size(run.type).value * run.gradient_bytes};
    result.parameters += bytes, result.gradients += gradients;
    result.gather += collective_time(CollectiveKind::AllGather, bytes, group, network);
    result.scatter += collective_time(CollectiveKind::ReduceScatter, gradients, group, network);
  }
  for (std::size_t l = unit.first; l <= unit.last; ++l) {
    const LayerTimes& times = pieces.layers.layers[l].times.front();
    result.forward += times.forward;
    result.backward += times.backward_input + times.backward_weight;
  }
  if (run.recomputation == Recompute::Full && unit.last > unit.first)
    result.backward += result.forward;
  return result;
}

Nanoseconds above(Nanoseconds communication, Nanoseconds compute) {
  return std::max(communication - compute, Nanoseconds{0});
}

}  // namespace

std::vector<UnitSharding> sharding_of(std::span<const ShardedUnit> units) {
  std::vector<UnitSharding> result;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const ShardedUnit& unit = units[u];
    const ShardedUnit before = u > 0 ? units[u - 1] : ShardedUnit{},
                      next = u + 1 < units.size() ? units[u + 1] : ShardedUnit{};
    const Bytes in_backward = unit.parameters + before.parameters + unit.gradients;
    PassBytes held = PassBytes::same(in_backward);
    held.forward = unit.parameters + next.parameters;
    result.push_back({above(unit.gather, before.forward),
                      above(unit.gather + next.scatter, next.backward) +
                          (u == 0 ? unit.scatter : Nanoseconds{0}),  // behind the last backward
                      held});
  }
  return result;
}

void add_sharding(MeshLayers& pieces, const MeshRun& run, const Network& network) {
  const std::vector<Unit> units = units_of(pieces);
  std::vector<ShardedUnit> whole;
  for (const Unit& unit : units) whole.push_back(sharded(unit, pieces, run, network));
  const std::vector<UnitSharding> sharding = sharding_of(whole);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto& [forward, backward, held] = sharding[u];
    const std::size_t first = units[u].first;
    LayerTimes& times = pieces.layers.layers[first].times.front();
    times.forward += forward, times.backward_input += backward;
    pieces.layers.collectives[first].forward += forward;
    pieces.layers.collectives[first].backward += backward;
    for (std::size_t l = first; l <= units[u].last; ++l) pieces.layers.layers[l].temporary += held;
  }
}

}  // namespace pfeife
