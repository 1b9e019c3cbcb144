// What the simulator's tests share: skipping without SimGrid, and graphs made by hand.
#pragma once

#include <gtest/gtest.h>

#include "planner/ir/machine/cluster.h"
#include "planner/ir/schedule/dependency_graph.h"
#include "sim/simulator.h"

namespace pfeife::testing {

class SimulatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  }
};

/// A DependencyGraph made task by task. Stage s is on rank s, rank r on device r.
class GraphByHand {
 public:
  GraphByHand(const Cluster& cluster, std::size_t ranks, Links links) : cluster_(&cluster) {
    graph.ranks = ranks;
    graph.semantics.links = links;
    graph.edge_begin = {0};
    for (std::size_t r = 0; r < ranks; ++r) {
      placement.rank_of_stage.emplace_back(static_cast<std::int64_t>(r));
      placement.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    }
  }

  /// A task of its own length on a rank.
  std::size_t compute(int rank, Nanoseconds time, const std::vector<std::size_t>& after = {}) {
    StageCost cost;
    cost.forward = time;
    costs.stages.push_back(cost);
    const Action action = forward(StageId{costs.stages.size() - 1}, MicrobatchId{0});
    return add({TaskKind::Compute,
                next_slot(TaskKind::Compute, action),
                RankId{rank},
                RankId{rank},
                0,
                0,
                action,
                {}},
               after);
  }
  /// A transfer between devices; its time alone is what the cluster says, or `time`.
  std::size_t transfer(int from, int to, Bytes bytes, const std::vector<std::size_t>& after = {},
                       std::optional<Nanoseconds> time = std::nullopt) {
    const std::int64_t stage = 1000 + 2 * static_cast<std::int64_t>(costs.pairs.size());
    const Action action =
        send(StageId{stage}, StageId{stage + 1}, MicrobatchId{0}, Direction::Forward);
    costs.pairs.push_back(
        {StageId{stage}, StageId{stage + 1}, bytes, Bytes{0},
         time.value_or(transfer_time(cluster_->path(DeviceId{from}, DeviceId{to}), bytes)),
         Nanoseconds{0}, false});
    return add({TaskKind::Transfer,
                next_slot(TaskKind::Transfer, action),
                RankId{from},
                RankId{to},
                0,
                0,
                action,
                {}},
               after);
  }
  /// What the replicas of a rank reduce, `wire` of which its bytes need of a whole link.
  std::size_t reduction(int rank, Nanoseconds time, Nanoseconds wire,
                        const std::vector<std::size_t>& after = {}) {
    const Action action = stage_action(Op::ReduceGrad, StageId{costs.replicas.size()});
    costs.replicas.push_back({Nanoseconds{0}, time, wire});
    return add({TaskKind::Reduction,
                next_slot(TaskKind::Reduction, action),
                RankId{rank},
                RankId{rank},
                0,
                0,
                action,
                {RankId{rank}}},
               after);
  }
  /// Makes `task` wait for one that comes later: for cycles.
  void wait_for_itself(std::size_t task) {
    graph.edges.insert(graph.edges.begin() + graph.edge_begin[task + 1],
                       {TaskId{task}, EdgeKind::Data});
    for (std::size_t t = task + 1; t < graph.edge_begin.size(); ++t) ++graph.edge_begin[t];
  }

  SimulationJob job(const std::string& name = "by hand") const {
    return {.name = name,
            .graph = &graph,
            .costs = &costs,
            .placement = &placement,
            .cluster = cluster_,
            .trace = true};
  }
  /// End of every task in ns.
  std::vector<std::int64_t> ends() const {
    const auto answer = simulate(graph, costs, placement, *cluster_);
    std::vector<std::int64_t> ends;
    for (const Event& event : std::get<Trace>(answer).events) ends.push_back(event.end.count());
    return ends;
  }

  DependencyGraph graph;
  StageCosts costs;
  Placement placement;

 private:
  std::uint32_t next_slot(TaskKind kind, Action action) {
    action.microbatch.reset();
    graph.slots.push_back({kind, {action}, {}});
    return static_cast<std::uint32_t>(graph.slots.size() - 1);
  }
  std::size_t add(Task task, const std::vector<std::size_t>& after) {
    for (const std::size_t t : after) graph.edges.push_back({TaskId{t}, EdgeKind::Data});
    graph.edge_begin.push_back(static_cast<std::uint32_t>(graph.edges.size()));
    graph.tasks.push_back(std::move(task));
    return graph.tasks.size() - 1;
  }

  const Cluster* cluster_;
};

}  // namespace pfeife::testing
