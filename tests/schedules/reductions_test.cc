// Reductions of stages that share parameters, in every family: no rank waits at a REDUCE_GRAD for
// another that needs something of it first, even if reductions block as collectives do.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "planner/ir/judge/validate.h"
#include "planner/ir/schedule/lower.h"
#include "tests/ir/rows.h"
#include "tests/schedules/timed.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

using ns = Nanoseconds;

/// A chain with some skips and some shared parameters.
StageCosts random_tied_costs(std::size_t stages, std::mt19937& random) {
  StageCosts costs = uniform_costs(stages, {}, {}, {}, {});
  for (StageCost& s : costs.stages)
    s.forward = ns{random() % 100}, s.backward_input = ns{random() % 100},
    s.backward_weight = ns{random() % 100};
  for (std::size_t skips = random() % 3; skips > 0 && stages > 2; --skips) {
    const std::size_t from = random() % (stages - 2),
                      to = from + 2 + random() % (stages - from - 2);
    const auto is_it = [&](const StagePair& p) {
      return p.from == StageId{from} && p.to == StageId{to};
    };
    if (std::ranges::none_of(costs.pairs, is_it))
      costs.pairs.push_back(
          {StageId{from}, StageId{to}, Bytes{1}, Bytes{1}, {}, {}, random() % 2 != 0});
  }
  std::ranges::sort(costs.pairs, {}, [](const StagePair& p) { return std::pair{p.from, p.to}; });
  for (StagePair& p : costs.pairs)
    p.forward_time = ns{random() % 30}, p.backward_time = ns{random() % 30};
  for (std::size_t ties = 1 + random() % 2; ties > 0; --ties) {
    const std::size_t a = random() % (stages - 1), b = a + 1 + random() % (stages - a - 1);
    costs.reductions.push_back({{StageId{a}, StageId{b}}, Bytes{1}, ns{random() % 50}});
  }
  return costs;
}

std::vector<ScheduleSpec> points(std::mt19937& random, std::size_t count) {
  std::vector<ScheduleSpec> found;
  while (found.size() < count) {
    const std::size_t ranks = 2 + random() % 7, microbatches = 1 + random() % 32;
    const std::vector<std::size_t> stages_per_rank{1 + random() % 4};
    const auto set = search_set(ranks, microbatches, stages_per_rank);
    if (!set.empty()) found.push_back(set[random() % set.size()]);
  }
  return found;
}

/// Every REDUCE_GRAD right behind the last weight gradient of its stage.
Schedule reduced_at_once(const Schedule& schedule) {
  Schedule result = schedule;
  for (auto& row : result.rows) {
    std::erase_if(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action && action->op == Op::ReduceGrad;
    });
    std::map<StageId, std::size_t> last;
    for (std::size_t p = 0; p < row.size(); ++p)
      for_each_action(row[p], [&](const Action& a) {
        if (makes_weight_gradient(a.op)) last[a.stage] = p;
      });
    std::vector<std::pair<std::size_t, StageId>> places;
    for (const auto& [stage, p] : last) places.push_back({p, stage});
    std::ranges::sort(places, std::greater<>());
    for (const auto& [p, stage] : places)
      row.insert(row.begin() + static_cast<std::ptrdiff_t>(p) + 1,
                 stage_action(Op::ReduceGrad, stage));
  }
  return result;
}

Nanoseconds step(const Schedule& lowered, const StageCosts& costs, const Placement& placement) {
  return step_time(
      std::get<Trace>(estimate(dependencies(lowered, stage_graph(costs), placement, {}), costs)));
}

// The judge shares no code with lowering. PFEIFE_INSTANCES: more of them.
TEST(Reductions, NeverHangWhereTheyBlock) {
  std::mt19937 random(26);
  std::size_t refused_at_once = 0;
  for (const ScheduleSpec& spec : points(random, instances(300))) {
    const StageCosts costs = random_tied_costs(spec.stages(), random);
    const Placement placement = placement_for(spec);
    for (const TransferOrder order : {TransferOrder::Ready, TransferOrder::Torch}) {
      const Schedule lowered = lower(generate(spec), costs, placement, {.transfers = order});
      const Requirements required{stage_graph(costs), spec.microbatches};
      const auto found = validate(lowered, required);
      ASSERT_TRUE(found.empty()) << schedule_name(spec) << ": " << found.front().message;
      StageCosts clipped = costs;
      clipped.norm = ns{random() % 30};
      const Schedule with_norm = lower(generate(spec), clipped, placement, {.transfers = order});
      EXPECT_TRUE(validate(with_norm, required).empty()) << schedule_name(spec);
      EXPECT_GE(step(with_norm, clipped, placement), step(lowered, costs, placement));
      if (order == TransferOrder::Torch) continue;
      const Schedule at_once = reduced_at_once(lowered);
      refused_at_once += !validate(at_once, required).empty();
      // Where nothing blocks, a reduction waits for its gradients wherever it stands.
      EXPECT_EQ(step(lowered, costs, placement), step(at_once, costs, placement));
    }
  }
  EXPECT_GT(refused_at_once, 0u);
}

// Rank 3 has the last stage, done first, and sends gradients of stage 3 that rank 0 needs before
// its own reduction.
TEST(Reductions, OfTheFirstAndTheLastStageComeAtTheEndOfInterleavedRows) {
  const ScheduleSpec spec{
      .family = "interleaved_1f1b", .ranks = 4, .microbatches = 4, .stages_per_rank = 2};
  StageCosts costs = uniform_costs(8, ns{10}, ns{10}, ns{10}, ns{1});
  costs.reductions.push_back({{StageId{0}, StageId{7}}, Bytes{8}, ns{2}});
  const Schedule lowered = lower(generate(spec), costs, placement_for(spec));
  const Requirements required{stage_graph(costs), 4};
  EXPECT_TRUE(validate(lowered, required).empty());
  const auto found = validate(reduced_at_once(lowered), required);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0].message,
      "deadlock with blocking SEND, RECV and REDUCE_GRAD: the reduction of 0REDUCE_GRAD waits "
      "for 4SEND_B1 before it in the row of rank 0; rank 0 waits to send 4B1 to rank 3, but "
      "rank 3 is at 7REDUCE_GRAD before 3RECV_B1 in its row");
}

std::string verdict(std::initializer_list<std::string> lines) {
  const auto found = validate(testing::rows(lines), {chain(2), 1});
  return found.empty() ? "" : to_string(found[0].rank) + ": " + found[0].message;
}

TEST(Norm, StandsOnEveryRankBetweenGradientsAndOptimizerSteps) {
  const std::string first = "0F0 0SEND_F0 0RECV_B0 0B0 ", second = "1RECV_F0 1F0 1B0 1SEND_B0 ";
  EXPECT_EQ(
      verdict({first + "0REDUCE_NORM 0OPTIMIZER_STEP", second + "1REDUCE_NORM 1OPTIMIZER_STEP"}),
      "");
  EXPECT_EQ(verdict({first + "0REDUCE_NORM", second}),
            "1: REDUCE_NORM is missing, while other ranks have theirs");
  EXPECT_EQ(verdict({first + "0REDUCE_NORM 0REDUCE_NORM", second + "1REDUCE_NORM"}),
            "0: 0REDUCE_NORM is there a second time; first at position 4");
  EXPECT_EQ(
      verdict({first + "0OPTIMIZER_STEP 0REDUCE_NORM", second + "1REDUCE_NORM 1OPTIMIZER_STEP"}),
      "0: the optimizer step stands before the rank's REDUCE_NORM");
  // Where it blocks, rank 0 never gets the gradient that it needs first.
  EXPECT_NE(verdict({first + "0REDUCE_NORM", "1RECV_F0 1F0 1B0 1REDUCE_NORM 1SEND_B0"}), "");
  EXPECT_EQ(verdict({first + "0REDUCE_NORM", "1RECV_F0 1F0 1REDUCE_NORM 1B0 1SEND_B0"}),
            "0: deadlock with blocking SEND, RECV and REDUCE_GRAD: the reduction of 0REDUCE_NORM "
            "waits for 1B0 on rank 1; rank 1 waits at 1B0 for 1REDUCE_NORM before it");
}

// Optimizer steps in the middle of a row go behind the norm.
TEST(Norm, IsAddedOnceBehindAllElse) {
  Schedule schedule = testing::rows({"0F0 0B0 0OPTIMIZER_STEP 2F0 2B0 2OPTIMIZER_STEP", "1F0 1B0"});
  const Schedule wanted = testing::rows(
      {"0F0 0B0 2F0 2B0 2REDUCE_NORM 0OPTIMIZER_STEP 2OPTIMIZER_STEP", "1F0 1B0 1REDUCE_NORM"});
  add_norm_reduction(schedule);
  EXPECT_EQ(schedule, wanted);
  add_norm_reduction(schedule);
  EXPECT_EQ(schedule, wanted);
}

}  // namespace
}  // namespace pfeife
