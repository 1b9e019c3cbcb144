// Random small planning problems, for tests that compare the search with brute force.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "planner/cost/estimate/evaluate.h"
#include "planner/schedules/families.h"
#include "planner/search/search.h"

namespace pfeife {

/// What a random problem may contain.
struct RandomShape {
  std::size_t layers = 9;
  double skip_share = 0.5;  ///< of the layers, those that read an older value
  bool shared_parameters = true;
  bool illegal_cuts = true;
  bool two_kinds = true;
};

inline Layers random_layers(std::mt19937& random, const RandomShape& shape) {
  const auto ns = [&](int most) { return Nanoseconds{random() % static_cast<unsigned>(most)}; };
  const auto bytes = [&](int most) {
    return Bytes{static_cast<std::int64_t>(random() % static_cast<unsigned>(most))};
  };
  const auto chance = [&](double share) {
    return static_cast<double>(random() % 1000) < share * 1000;
  };
  Layers layers;
  for (std::size_t l = 0; l < shape.layers; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    for (int kind = 0; kind < 2; ++kind) layer.times.push_back({ns(400), ns(500), ns(300), ns(20)});
    layer.saved = bytes(300), layer.weight_saved = bytes(100),
    layer.temporary = {bytes(200), bytes(200), bytes(200), bytes(200)};
    if (shape.illegal_cuts && random() % 8 == 0) layer.no_cut_after = "in-place pair";
    layers.layers.push_back(layer);
    LayerParameter parameter{"p", bytes(200), {}, {}, {LayerId{l}}, {ns(50), ns(80)}};
    parameter.gradient = parameter.bytes, parameter.state = 2 * parameter.bytes;
    layers.parameters.push_back(parameter);
  }
  std::vector<std::vector<LayerId>> readers(shape.layers);
  for (std::size_t l = 1; l < shape.layers; ++l) {
    const LayerId id{l};
    if (random() % 30 != 0) readers[l - 1].push_back(id);
    if (chance(shape.skip_share)) {
      auto& list = readers[random() % l];
      if (list.empty() || list.back() != id) list.push_back(id);
    }
  }
  for (std::size_t l = 0; l < shape.layers; ++l) {
    if (readers[l].empty()) continue;
    std::ranges::sort(readers[l]);
    const bool gradient = random() % 12 != 0;
    LayerValue value{"v", LayerId{l}, readers[l], bytes(900) + Bytes{1}, {}, {}};
    const bool empty = value.bytes.value % 8 == 0;  // a gradient of no bytes
    value.gradient_bytes = gradient && !empty ? value.bytes : Bytes{0};
    value.has_gradient = gradient;
    if (random() % 10 == 0) value.transfer_time = ns(100);
    if (random() % 2 == 0) {
      LayerStorage storage{value.bytes, readers[l], {}, layers.values.size()};
      if (random() % 2 == 0) storage.weight_savers = {readers[l].front()};
      layers.storages.push_back(storage);
    }
    layers.values.push_back(value);
  }
  if (shape.shared_parameters && random() % 4 == 0)
    layers.parameters.push_back({"tied",
                                 Bytes{300},
                                 Bytes{300},
                                 Bytes{600},
                                 {LayerId{0}, LayerId{shape.layers - 1}},
                                 {ns(50), ns(80)}});
  return layers;
}

inline Cluster random_cluster(std::mt19937& random, std::size_t devices, bool two_kinds) {
  DeviceKind kind;
  kind.stage_overhead = Nanoseconds{random() % 20};
  kind.iteration_overhead = Nanoseconds{random() % 50};
  Cluster cluster = uniform_cluster(devices, kind, {static_cast<double>(1 + random() % 20) * 1e9},
                                    Nanoseconds{random() % 60});
  cluster.kinds.push_back(kind);
  if (two_kinds)
    for (auto& k : cluster.kind_of_device) k = random() % 2;
  return cluster;
}

/// Every legal partition into `stages` stages.
inline void for_each_partition(const Layers& layers, std::size_t stages,
                               const std::function<void(const Partition&)>& visit) {
  Partition cuts;
  const std::function<void()> extend = [&] {
    if (cuts.stages() == stages) return visit(cuts);
    for (std::int32_t c = cuts.cuts.empty() ? 0 : cuts.cuts.back() + 1;
         c + 1 < static_cast<std::int32_t>(layers.size()); ++c) {
      if (!layers.layers[static_cast<std::size_t>(c)].no_cut_after.empty()) continue;
      cuts.cuts.push_back(c);
      extend();
      cuts.cuts.pop_back();
    }
  };
  extend();
}

/// Any point of any family with the given ranks and microbatches.
inline ScheduleSpec random_spec(std::mt19937& random, std::size_t ranks, std::size_t microbatches,
                                std::vector<std::size_t> stages_per_rank) {
  const std::vector<ScheduleSpec> set = search_set(ranks, microbatches, stages_per_rank);
  return set[random() % set.size()];
}

/// Every choice of recomputed stages ([stage]) that is allowed.
inline std::vector<std::vector<bool>> choices(Recompute recompute, std::size_t stages) {
  const std::size_t all = (std::size_t{1} << stages) - 1;
  std::vector<std::vector<bool>> found;
  for (std::size_t subset = recompute == Recompute::Full ? all : 0;
       subset <= (recompute == Recompute::None ? 0 : all); ++subset) {
    auto& recomputed = found.emplace_back();
    for (std::size_t s = 0; s < stages; ++s) recomputed.push_back(subset >> s & 1U);
  }
  return found;
}

/// The fastest cuts of one schedule that fit, by trying all, with all choices of recomputed stages.
struct Best {
  double time = std::numeric_limits<double>::infinity();
  /// The same where rows that may hang count, too: what can be proven.
  double floor = std::numeric_limits<double>::infinity();
  std::vector<Partition> at;
  std::size_t tried = 0;
};
inline Best brute_force(const Problem& problem, const ScheduleSpec& spec) {
  Best best;
  const Schedule schedule = generate(spec);
  const Placement placement = placement_for(spec);
  const auto recomputations = choices(problem.recompute, spec.stages());
  for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
    ++best.tried;
    for (const std::vector<bool>& recomputed : recomputations) {
      const Prices plan = evaluate(problem.layers, problem.cluster, schedule, placement, partition,
                                   MemoryRule::Lifetimes,
                                   {recomputed, {}, problem.recompute_except_last}, problem.norm);
      const auto time = static_cast<double>(plan.estimate.count());
      if (!fits(least_peak_memory(plan, placement), problem.memory_limit)) continue;
      best.floor = std::min(best.floor, time);
      if (!fits(plan.peak_memory, problem.memory_limit) &&
          !fits(received_late(plan, placement).peak_memory, problem.memory_limit))
        continue;
      if (time < best.time) best.time = time, best.at.clear();
      if (time == best.time && (best.at.empty() || best.at.back() != partition))
        best.at.push_back(partition);
    }
  });
  return best;
}

/// The fastest plan of the schedules whose order is known at the given cuts, within the memory.
inline double best_at_given_cuts(const Problem& problem) {
  double best = std::numeric_limits<double>::infinity();
  for (const ScheduleSpec& spec : problem.schedules)
    for (const std::vector<bool>& recomputed : choices(problem.recompute, spec.stages())) {
      if (spec.family == "zb_greedy" || spec.stages() != problem.cuts->stages()) continue;
      const Prices plan = evaluate(problem.layers, problem.cluster, generate(spec),
                                   placement_for(spec), *problem.cuts, MemoryRule::Lifetimes,
                                   {recomputed, {}, problem.recompute_except_last});
      if (fits(plan.peak_memory, problem.memory_limit) ||
          fits(received_late(plan, placement_for(spec)).peak_memory, problem.memory_limit))
        best = std::min(best, static_cast<double>(plan.estimate.count()));
    }
  return best;
}

}  // namespace pfeife
