// What replicas reduce of each stage, on one link of its rank: worked by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "planner/cost/estimate/estimator.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

constexpr Nanoseconds nanos(std::int64_t count) { return Nanoseconds{count}; }

Trace estimated_trace(const Schedule& compute_only, const StageCosts& costs,
                      const Placement& placement) {
  const DependencyGraph graph = dependencies(lower(compute_only, costs, placement),
                                             stage_graph(costs), placement, Semantics{});
  return std::get<Trace>(estimate(graph, costs));
}

/// Start and end of what is reduced of a stage: beside its last backward, and the rest.
std::array<std::pair<std::int64_t, std::int64_t>, 2> reduced(const Trace& trace, int stage) {
  std::array<std::pair<std::int64_t, std::int64_t>, 2> found;
  std::size_t count = 0;
  for (const Event& event : trace.events)
    if (event.kind == TaskKind::Reduction && std::get<Action>(event.cell).stage == StageId{stage})
      found.at(count++) = {event.start.count(), event.end.count()};
  EXPECT_EQ(count, 2u);
  return found;
}

/// One rank, forward 1, backward 10, optimizer step 1: F 0 to 2, 1B0 2 to 12, 0B0 12 to 22.
struct OneRank {
  explicit OneRank(std::vector<ReplicaReduction> replicas) {
    StageCosts costs = uniform_costs(2, nanos(1), nanos(6), nanos(4), nanos(0));
    for (StageCost& stage : costs.stages) stage.optimizer = nanos(1);
    costs.replicas = std::move(replicas);
    trace = estimated_trace(schedule, costs, round_robin(2, 1));
    where = attribution(trace, RankId{0});
  }
  Schedule schedule = read_schedule("0F0,1F0,1B0,0B0\n", "by hand");
  Trace trace;
  Attribution where;
};

using Spans = std::array<std::pair<std::int64_t, std::int64_t>, 2>;

// Stage 1: 4 beside its backward, 5 behind it, from 12 to 17. Only then is the link free for stage
// 0: 6 to 23, and the last 3, to 26. Backward ends at 22, so 4 are exposed.
TEST(ReplicaReductions, OfOneStageRunBesideTheBackwardOfTheNext) {
  const OneRank one({{nanos(6), nanos(3)}, {nanos(4), nanos(5)}});
  EXPECT_EQ(reduced(one.trace, 1), (Spans{{{2, 6}, {12, 17}}}));
  EXPECT_EQ(reduced(one.trace, 0), (Spans{{{17, 23}, {23, 26}}}));
  EXPECT_EQ(one.where.reduction, nanos(4));
  EXPECT_EQ(one.where.compute, nanos(22));
  EXPECT_EQ(one.where.optimizer, nanos(2));
  EXPECT_EQ(one.where.total(), nanos(28));
  EXPECT_EQ(step_time(one.trace), nanos(28));
}

// Stage 1's outlast the backward of stage 0: 12 to 32, then 6 and 3.
TEST(ReplicaReductions, OfAStageThatOutlastTheRanksBackwardsAreExposed) {
  const OneRank one({{nanos(6), nanos(3)}, {nanos(4), nanos(20)}});
  EXPECT_EQ(reduced(one.trace, 0), (Spans{{{32, 38}, {38, 41}}}));
  EXPECT_EQ(one.where.reduction, nanos(19));
  EXPECT_EQ(one.where.total(), nanos(43));
}

// The link is free when the backward of stage 0 begins: 3 behind it are exposed.
TEST(ReplicaReductions, ThatNothingIsInTheWayOfAreExposedByTheirRest) {
  const OneRank one({{nanos(6), nanos(3)}, {nanos(4), nanos(0)}});
  EXPECT_EQ(reduced(one.trace, 0), (Spans{{{12, 18}, {22, 25}}}));
  EXPECT_EQ(one.where.reduction, nanos(3));
}

// A rank's optimizer steps are behind its own reductions; other ranks do not wait for them.
TEST(ReplicaReductions, HoldUpTheOptimizerStepsOfTheirRankOnly) {
  StageCosts costs = uniform_costs(2, nanos(1), nanos(6), nanos(4), nanos(0));
  costs.replicas = {{nanos(0), nanos(0)}, {nanos(0), nanos(50)}};
  const Schedule schedule = read_schedule("0F0,0B0\n1F0,1B0\n", "by hand");
  const Trace trace = estimated_trace(schedule, costs, round_robin(2, 2));
  EXPECT_EQ(step_time(trace), nanos(62));
  EXPECT_EQ(attribution(trace, RankId{1}).reduction, nanos(50));
  EXPECT_EQ(attribution(trace, RankId{0}).reduction, nanos(0));
}

// One that is tied, too, waits for its partner and for its replicas.
TEST(ReplicaReductions, AreBesideThoseOfSharedParameters) {
  StageCosts costs = uniform_costs(2, nanos(1), nanos(6), nanos(4), nanos(0));
  costs.replicas = {{nanos(0), nanos(5)}, {nanos(0), nanos(5)}};
  costs.reductions.push_back({{StageId{0}, StageId{1}}, Bytes{1}, nanos(7)});
  const Schedule schedule = read_schedule("0F0,0B0\n1F0,1B0\n", "by hand");
  const Trace trace = estimated_trace(schedule, costs, round_robin(2, 2));
  // 1B0 ends at 12, 0B0 at 22: replicas to 17 and 27, the shared parameter 22 to 29.
  EXPECT_EQ(step_time(trace), nanos(29));
}

// The norm of all gradients needs them reduced.
TEST(ReplicaReductions, ComeBeforeTheNorm) {
  StageCosts costs = uniform_costs(2, nanos(1), nanos(6), nanos(4), nanos(0));
  costs.replicas = {{nanos(0), nanos(0)}, {nanos(0), nanos(50)}};
  costs.norm = nanos(3);
  const Schedule schedule = read_schedule("0F0,0B0\n1F0,1B0\n", "by hand");
  EXPECT_EQ(step_time(estimated_trace(schedule, costs, round_robin(2, 2))), nanos(65));
}

// The same, by the link alone: what it has done when a stage's last backward ends.
TEST(ReplicaReductions, OfEveryFamilyAreThoseOfOneLinkARank) {
  std::mt19937 random(5);
  const auto some = [&](std::uint32_t most) { return nanos(random() % most); };
  std::size_t outlasted = 0;
  std::vector<ScheduleSpec> specs;
  for (const std::size_t microbatches : {1, 2, 4, 8})
    for (const ScheduleSpec& spec : search_set(3, microbatches, std::vector<std::size_t>{1, 2, 3}))
      specs.insert(specs.end(), 4, spec);
  for (const ScheduleSpec& spec : specs) {
    StageCosts costs = uniform_costs(spec.stages(), nanos(0), nanos(0), nanos(0), nanos(0));
    for (std::size_t s = 0; s < spec.stages(); ++s) {
      StageCost& stage = costs.stages[s];
      stage.forward = some(100), stage.backward_input = some(100);
      stage.backward_weight = some(100), stage.optimizer = some(100);
      const Nanoseconds beside = nanos(random() % (1 + stage.backward().count()));
      costs.replicas.push_back({beside, some(600)});
    }
    const Placement placement = placement_for(spec);
    const Trace trace = estimated_trace(generate(spec), costs, placement);
    for (std::size_t r = 0; r < spec.ranks; ++r) {
      std::vector<const Event*> last(spec.stages());  // [stage] its last weight gradient
      Nanoseconds computed{0}, steps{0};
      for (const Event& event : trace.events) {
        if (event.rank != RankId{r}) continue;
        if (event.kind == TaskKind::Compute)
          for_each_action(event.cell, [&](const Action& a) {
            if (makes_weight_gradient(a.op)) last[a.stage.index()] = &event;
          });
        if (event.kind == TaskKind::Compute) computed = std::max(computed, event.end);
        if (event.kind == TaskKind::Optimizer) steps += event.end - event.start;
      }
      std::vector<std::size_t> order;
      for (std::size_t s = 0; s < last.size(); ++s)
        if (last[s] != nullptr) order.push_back(s);
      std::ranges::sort(order, {}, [&](std::size_t s) { return last[s] - trace.events.data(); });
      Nanoseconds link{0};
      for (const std::size_t s : order)
        link = std::max(link + costs.replicas[s].beside, last[s]->end) + costs.replicas[s].behind;
      const Attribution where = attribution(trace, RankId{r});
      // (The first of a rank has a free link: what runs beside its backward ends with it.)
      EXPECT_EQ(where.reduction, std::max(link - computed, nanos(0))) << schedule_name(spec) << r;
      EXPECT_EQ(where.total(), step_time(trace));
      EXPECT_EQ(where.optimizer, steps);
      outlasted +=
          order.size() > 1 && link > last[order.back()]->end + costs.replicas[order.back()].behind;
    }
  }
  EXPECT_GT(outlasted, 50u);
}

}  // namespace
}  // namespace pfeife
