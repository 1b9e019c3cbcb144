#include "planner/mesh/sharded_parameters.h"

#include <algorithm>
#include <array>
#include <vector>

#include "planner/mesh/repeat_layer.h"

namespace pfeife {
namespace {

struct Unit {
  std::size_t first = 0, last = 0;      ///< layers
  std::array<Bytes, 2> parameters;      ///< dense, of experts
  Nanoseconds gather{0}, scatter{0};    ///< once
  Nanoseconds forward{0}, backward{0};  ///< of its layers, with what is recomputed
  Bytes gathered() const { return parameters[0] + parameters[1]; }
};

std::vector<Unit> units_of(const MeshLayers& made) {
  std::vector<Unit> units;
  std::vector<std::size_t> unit_of;  // [layer]
  const std::size_t layers = made.layers.size();
  for (std::size_t l = 0; l < layers;) {
    const bool transformer = l > 0 && l + 1 < layers;
    const std::size_t next = l + (transformer ? kPiecesOfLayer : 1);
    units.push_back({.first = l, .last = next - 1});
    unit_of.resize(next, units.size() - 1);
    l = next;
  }
  for (std::size_t p = 0; p < made.of_experts.size(); ++p) {
    std::vector<std::size_t> counted;
    for (const LayerId user : made.layers.parameters[p].users) {
      const std::size_t unit = unit_of[user.index()];
      if (std::ranges::find(counted, unit) != counted.end()) continue;
      counted.push_back(unit);
      units[unit].parameters[made.of_experts[p] ? 1 : 0] += made.layers.parameters[p].bytes;
    }
  }
  return units;
}

void add_times(Unit& unit, const MeshLayers& made, const MeshRun& run, const Network& network) {
  for (const bool experts : {false, true}) {
    const Bytes bytes = unit.parameters[experts ? 1 : 0];
    if (bytes == Bytes{0}) continue;
    const GroupShape group = gradient_group(run, experts, network);
    const Bytes gradients{bytes.value / element_size(run.type).value * run.gradient_bytes};
    unit.gather += collective_time(CollectiveKind::AllGather, bytes, group, network);
    unit.scatter += collective_time(CollectiveKind::ReduceScatter, gradients, group, network);
  }
  for (std::size_t l = unit.first; l <= unit.last; ++l) {
    const LayerTimes& times = made.layers.layers[l].times.front();
    unit.forward += times.forward;
    unit.backward += times.backward_input + times.backward_weight;
  }
  if (run.recomputation == Recomputation::Full && unit.last > unit.first)
    unit.backward += unit.forward;
}

Nanoseconds above(Nanoseconds communication, Nanoseconds compute) {
  return std::max(communication - compute, Nanoseconds{0});
}

}  // namespace

void add_sharding(MeshLayers& made, const MeshRun& run, const Network& network) {
  std::vector<Unit> units = units_of(made);
  for (Unit& unit : units) add_times(unit, made, run, network);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const Unit& unit = units[u];
    const bool has_next = u + 1 < units.size();
    const Nanoseconds forward = above(unit.gather, u > 0 ? units[u - 1].forward : Nanoseconds{0});
    const Nanoseconds backward =
        above(unit.gather + (has_next ? units[u + 1].scatter : Nanoseconds{0}),
              has_next ? units[u + 1].backward : Nanoseconds{0}) +
        (u == 0 ? unit.scatter : Nanoseconds{0});  // behind the last backward
    LayerTimes& times = made.layers.layers[unit.first].times.front();
    times.forward += forward, times.backward_input += backward;
    made.collectives[unit.first].forward += forward;
    made.collectives[unit.first].backward += backward;
    const Bytes next = has_next ? units[u + 1].gathered() : Bytes{0},
                before = u > 0 ? units[u - 1].gathered() : Bytes{0},
                gradients{unit.gathered().value / element_size(run.type).value *
                          run.gradient_bytes};
    for (std::size_t l = unit.first; l <= unit.last; ++l) {
      PassBytes& held = made.layers.layers[l].temporary;
      const Bytes back = unit.gathered() + before + gradients;
      held.forward += unit.gathered() + next;
      held.backward += back, held.input += back, held.weight += back;
    }
  }
}

}  // namespace pfeife
