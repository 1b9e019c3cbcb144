#include "planner/ir/trace/lost_time.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/ir/schedule/lower.h"
#include "tests/ir/rows.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;
using testing::rows;

/// Two ranks, a forward and a backward each: 0F0, then over to 1F0, 1B0, and back to 0B0.
DependencyGraph one_microbatch() {
  const Schedule lowered = rows({"0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"});
  return dependencies(lowered, chain(2), round_robin(2, 2), {});
}

/// Durations, launches and gaps by task, run along the graph.
struct Times {
  std::vector<ns> gap, launch, work;
};

Trace trace_of(const DependencyGraph& graph, const Times& times) {
  Trace trace{.ranks = graph.ranks};
  trace.events.resize(graph.size());
  for (const TaskId id : task_order(graph).order) {
    const std::size_t t = id.index();
    const Task& task = graph.tasks[t];
    ns ready{0};
    for (const Edge& edge : graph.edges_into(id))
      ready = std::max(ready, trace.events[edge.from.index()].end);
    Event& event = trace.events[t];
    event.kind = task.kind, event.rank = task.rank, event.peer = task.peer, event.cell = task.cell;
    event.start = ready + times.gap[t];
    event.launch = times.launch[t];
    event.end = event.start + times.launch[t] + times.work[t];
  }
  return trace;
}

Times even(const DependencyGraph& graph, int work) {
  const std::vector<ns> none(graph.size(), ns{0});
  return {none, none, std::vector<ns>(graph.size(), ns{work})};
}

std::size_t task_of_cell(const DependencyGraph& graph, const std::string& cell) {
  for (std::size_t t = 0; t < graph.size(); ++t)
    if (to_string(graph.tasks[t].cell) == cell) return t;
  ADD_FAILURE() << cell;
  return 0;
}

// The only path is 0F0, transfer, 1F0, 1B0, transfer, 0B0, each 10: 60. What is added to each is
// lost.
TEST(LostTime, IsToWhatEachTaskOfAChainTookLonger) {
  const DependencyGraph graph = one_microbatch();
  Times run = even(graph, 10);
  run.work[task_of_cell(graph, "1B0")] += ns{7};
  run.launch[task_of_cell(graph, "0B0")] += ns{3};
  run.work[task_of_cell(graph, "0SEND_F0")] += ns{2};
  run.gap[task_of_cell(graph, "1F0")] += ns{5};
  const LostTime lost = lost_time(graph, trace_of(graph, even(graph, 10)), trace_of(graph, run));
  EXPECT_EQ(lost.predicted, ns{60});
  EXPECT_EQ(lost.measured, ns{77});
  const std::array<ns, kLosses> rank0{ns{0}, ns{3}, ns{2}, ns{0}},
      rank1{ns{7}, ns{0}, ns{0}, ns{5}};
  EXPECT_EQ(lost.of_rank, (std::vector{rank0, rank1}));
}

// 1F0 takes 100, so that 0F1 may take 50 longer and nobody waits.
TEST(LostTime, IsNoneWhereTheDelayIsHidden) {
  const Schedule lowered = lower(rows({"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"}),
                                 uniform_costs(2, ns{1}, ns{1}, ns{1}, ns{1}), round_robin(2, 2));
  const DependencyGraph graph = dependencies(lowered, chain(2), round_robin(2, 2), {});
  Times plan = even(graph, 10);
  plan.work[task_of_cell(graph, "1F0")] = ns{100};
  Times run = plan;
  run.work[task_of_cell(graph, "0F1")] += ns{50};
  EXPECT_EQ(lost_time(graph, trace_of(graph, plan), trace_of(graph, run)).total(), ns{0});
  run.work[task_of_cell(graph, "0F1")] += ns{50};
  EXPECT_EQ(lost_time(graph, trace_of(graph, plan), trace_of(graph, run)).total(), ns{10});
}

/// The losses add up to the difference to the nanosecond, whatever was measured.
TEST(LostTime, AddsUpToTheDifferenceOnAnyTraces) {
  std::mt19937 random(27);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t ranks = 2 + trial % 3, microbatches = 1 + random() % 6;
    Schedule compute;
    for (std::size_t r = 0; r < ranks; ++r) {
      auto& row = compute.rows.emplace_back();
      for (const bool forth : {true, false})
        for (std::size_t m = 0; m < microbatches; ++m)
          row.push_back(forth ? forward(StageId{r}, MicrobatchId{m})
                              : backward(StageId{r}, MicrobatchId{m}));
    }
    const Placement placement = round_robin(ranks, ranks);
    const Schedule lowered =
        lower(compute, uniform_costs(ranks, ns{1}, ns{1}, ns{1}, ns{1}), placement);
    const DependencyGraph graph = dependencies(lowered, chain(ranks), placement, {});
    const auto drawn = [&](int most) {
      Times times = even(graph, 0);
      for (std::vector<ns>* each : {&times.gap, &times.launch, &times.work})
        for (ns& time : *each) time = ns{static_cast<int>(random() % static_cast<unsigned>(most))};
      return times;
    };
    const Trace predicted = trace_of(graph, drawn(1000)), measured = trace_of(graph, drawn(1500));
    const LostTime lost = lost_time(graph, predicted, measured);
    EXPECT_EQ(lost.total(), step_time(measured) - step_time(predicted));
    EXPECT_EQ(lost.measured, step_time(measured));
  }
}

}  // namespace
}  // namespace pfeife
