// What tests/gpu/card computes by itself: a device that ranks share, and a model with fewer layers.
#include "tests/gpu/card/shared_device.h"

#include <gtest/gtest.h>

#include "planner/ir/schedule/lower.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/schedules/families.h"
#include "tests/gpu/card/first_layers.h"
#include "tests/runtime/pipelines.h"

namespace pfeife::card {
namespace {

DependencyGraph two_independent_tasks_and_a_transfer() {
  DependencyGraph graph;
  graph.ranks = 2;
  graph.slots = {
      {TaskKind::Compute, {}, {}}, {TaskKind::Compute, {}, {}}, {TaskKind::Transfer, {}, {}}};
  graph.tasks.resize(4);
  for (std::uint32_t t = 0; t < 3; ++t) graph.tasks[t].slot = t;
  graph.tasks[2].kind = TaskKind::Transfer;
  graph.tasks[3].slot = 0;  // after the transfer
  // Task 2 waits for task 0, task 3 for task 2.
  graph.edge_begin = {0, 0, 0, 1, 2};
  graph.edges = {{TaskId{0}, EdgeKind::Data}, {TaskId{2}, EdgeKind::Data}};
  return graph;
}

// By hand: 20 and 60 ns of work share the device until the first is done at 40, with 40 left of
// the second. A transfer of 10 takes none of it. From 50 on, 30 left of the second and 20 of the
// last share: the last is done at 90, with 10 left of the second, which ends at 100.
TEST(SharedDevice, KTasksGetAKthEachAndTransfersNothing) {
  const DependencyGraph graph = two_independent_tasks_and_a_transfer();
  const auto times =
      times_on_shared_device(graph, {Nanoseconds{20}, Nanoseconds{60}, Nanoseconds{10}});
  const std::pair<int, int> expected[] = {{0, 40}, {0, 100}, {40, 50}, {50, 90}};
  ASSERT_EQ(times.size(), 4u);
  for (std::size_t t = 0; t < 4; ++t) {
    EXPECT_EQ(times[t].start, Nanoseconds{expected[t].first}) << t;
    EXPECT_EQ(times[t].end, Nanoseconds{expected[t].second}) << t;
  }
}

// The device works without a pause, whoever computes: without transfers a step is all the work.
TEST(SharedDevice, AStepWithoutTransfersIsTheSumOfAllWork) {
  for (const std::string family : {"gpipe", "1f1b", "zb_h1"}) {
    const ScheduleSpec spec{family, 3, 6, 1, {}, {}};
    const Placement placement = placement_for(spec);
    const StageCosts costs =
        uniform_costs(3, Nanoseconds{100}, Nanoseconds{70}, Nanoseconds{50}, Nanoseconds{0});
    const Schedule lowered = lower(generate(spec), costs, placement);
    const DependencyGraph graph = dependencies(lowered, stage_graph(costs), placement, {});
    Nanoseconds end{0};
    for (const TaskTimes& t : times_on_shared_device(graph, slot_durations(graph.slots, costs)))
      end = std::max(end, t.end);
    EXPECT_NEAR(static_cast<double>(end.count()), 3 * 6 * 220, 1) << family;
  }
}

// Its first node of a later layer gone, the head reads what the first layer made; and it trains.
TEST(FirstLayers, AreAModelOfFewerLayers) {
  const Graph whole = read_pt2(testing::model_path("llama2_7b"));
  const Graph one = first_layers(whole, 1);
  const auto count = [](const Graph& graph, const std::string& op) {
    return std::ranges::count(graph.nodes, op, &Node::op);
  };
  EXPECT_EQ(count(whole, "aten::scaled_dot_product_attention"), 32);
  EXPECT_EQ(count(one, "aten::scaled_dot_product_attention"), 1);
  EXPECT_EQ(count(whole, "aten::linear"), 32 * 7 + 1);
  EXPECT_EQ(count(one, "aten::linear"), 7 + 1);
  EXPECT_NE(one.digest, whole.digest);
  for (const Node& node : one.nodes)
    for (const ValueId v : inputs_of(node)) {
      const Value& value = one.value(v);
      EXPECT_TRUE(value.role != ValueRole::Intermediate || value.producer) << node.name;
    }
  EXPECT_EQ(whole_graph(one, effects_of(one)).stages[0].parameters.size(), 12u);
}

}  // namespace
}  // namespace pfeife::card
