#include "planner/cost/estimate/priced_plan.h"

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/memory.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/ir/schedule/lower.h"

namespace pfeife {
namespace {

const Layer& before(std::int32_t cut, const Layers& layers) {
  return layers.layers[static_cast<std::size_t>(cut)];
}

/// Names of what lies left of each cut, for people who read the plan.
std::vector<std::string> cut_modules(const Layers& layers, const Partition& partition) {
  std::vector<std::string> names;
  for (const std::int32_t cut : partition.cuts) {
    const Layer& layer = before(cut, layers);
    names.push_back(layer.module_path.empty() ? layer.name : layer.module_path);
  }
  return names;
}

/// The graph's last node left of each cut; nothing for models without a graph.
std::vector<std::int32_t> cut_nodes(const Layers& layers, const Partition& partition) {
  std::vector<std::int32_t> nodes;
  for (std::int32_t cut : partition.cuts) {
    while (cut > 0 && before(cut, layers).nodes.empty()) --cut;
    if (before(cut, layers).nodes.empty()) return {};
    nodes.push_back(before(cut, layers).nodes.back().value);
  }
  return nodes;
}

/// The nodes of each block, as cut_nodes() counts them.
std::vector<NodeRange> block_nodes(const Layers& layers, const std::vector<LayerRange>& blocks) {
  const auto last_node = [&](LayerId l) {
    while (l.value >= 0 && layers.layers[l.index()].nodes.empty()) --l.value;
    return l.value < 0 ? -1 : layers.layers[l.index()].nodes.back().value;
  };
  std::vector<NodeRange> nodes;
  for (const LayerRange& block : blocks) {
    const NodeRange range{block.first.value == 0 ? -1 : last_node(LayerId{block.first.value - 1}),
                          last_node(block.last)};
    if (range.last < 0) return {};
    nodes.push_back(range);
  }
  return nodes;
}

void name_cuts(Plan& plan, const Layers& layers, const Cluster& cluster) {
  plan.model_digest = layers.digest;
  plan.cluster_digest = cluster.digest;
  plan.linear_order = layers.order;
  plan.node_order = layers.node_order;
  plan.training.microbatch_size = layers.microbatch_size;
  plan.training.microbatch_costs = layers.microbatches;
  plan.cut_modules = cut_modules(layers, plan.partition);
  plan.cut_nodes = cut_nodes(layers, plan.partition);
  plan.block_nodes = block_nodes(layers, plan.activations.blocks);
  plan.activations.stages.resize(plan.partition.stages(), false);
}

/// The plan's compute-only schedule with its transfers, received as it chooses.
Schedule lowered_as_chosen(const Plan& plan, const StageCosts& costs) {
  Schedule lowered = lower(plan.schedule, costs, plan.placement);
  if (plan.receives == Receives::AsReady) return lowered;
  return with_late_receives(lowered, stage_graph(costs), plan.placement);
}

/// `plan` with its transfers, and what follows from them.
std::variant<PricedPlan, Deadlock> in_full(Plan plan, StageCosts costs) {
  const DependencyGraph graph = executed_graph(plan, costs);
  auto outcome = estimate(graph, costs);
  if (const auto* deadlock = std::get_if<Deadlock>(&outcome)) return *deadlock;
  Trace& estimated = std::get<Trace>(outcome);
  plan.peak_memory = peak_memory(plan.schedule, costs, plan.placement);
  add_memory(estimated, graph, plan.schedule, costs, plan.placement);
  plan.estimate = step_time(estimated);
  return PricedPlan{std::move(plan), std::move(costs), std::move(estimated)};
}

}  // namespace

std::variant<PricedPlan, Deadlock> priced_plan(Plan plan, bool lowered, const Layers& layers,
                                               const Cluster& cluster) {
  name_cuts(plan, layers, cluster);
  StageCosts costs = stage_costs(layers, plan, cluster);
  if (!lowered)
    plan.schedule = lowered_as_chosen(plan, costs);
  else if (costs.norm)
    add_norm_reduction(plan.schedule);
  return in_full(std::move(plan), std::move(costs));
}

std::variant<PricedPlan, Deadlock> priced_plan(Plan plan, const CostedRows& rows,
                                               const Layers& layers, const Cluster& cluster) {
  name_cuts(plan, layers, cluster);
  StageCosts costs = rows.costs;
  costs.norm = norm_time(layers, step_norm(plan), plan.partition, plan.placement, cluster);
  plan.schedule = costs == rows.costs ? rows.lowered : lowered_as_chosen(plan, costs);
  return in_full(std::move(plan), std::move(costs));
}

DependencyGraph executed_graph(const Plan& plan, const StageCosts& costs) {
  return dependencies(plan.schedule, stage_graph(costs), plan.placement,
                      {Queues::None, Links::Delay, false});
}

}  // namespace pfeife
