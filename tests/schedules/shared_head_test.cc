// Output layers that all ranks share: families, their order in time, what the judge refuses,
// memory.
//
// The comparison with measured runs: tests/experiments/shared_head_runs_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/cost/estimate/memory.h"
#include "planner/io/plan/schedule_csv.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/judge/validate.h"
#include "planner/schedule_tool/lifetimes.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/runnable.h"
#include "tests/schedules/plain_loop.h"
#include "tests/schedules/timed.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife::shared_head {
namespace {

ScheduleSpec point(const std::string& family, std::size_t ranks, std::size_t microbatches) {
  return {.family = family, .ranks = ranks, .microbatches = microbatches};
}
StageCosts costs_of(const ScheduleSpec& spec, const std::string& text) {
  return tool::stage_costs_of(tool::parse_costs(text), spec.stages(), 1,
                              family(spec.family).head_barriers);
}
double ms(const Trace& trace) { return milliseconds(step_time(trace)); }

/// Calls `visit` with every point of D <= 8, N <= 14 of each family.
template <class Visitor>
void for_each_point(Visitor&& visit) {
  for (const Family& known : shared_head_families())
    for (std::size_t d = 1; d <= 8; ++d)
      for (std::size_t n = 1; n <= 14; ++n) visit(point(known.name, d, n));
}
std::string text_of(const ScheduleSpec& spec) {
  return spec.family + " " + std::to_string(spec.ranks) + " " + std::to_string(spec.microbatches);
}

TEST(SharedHead, EveryPointRunsToItsEndAndIsAcceptedAlsoWhereTransfersBlock) {
  for_each_point([](const ScheduleSpec& spec) {
    const Schedule rows = generate(spec);
    EXPECT_EQ(placement_of(rows), placement_for(spec));
    EXPECT_EQ(head_barriers(rows), family(spec.family).head_barriers) << text_of(spec);
    EXPECT_EQ(describe(stuck_cells(rows, spec.ranks, spec.microbatches)), "") << text_of(spec);
    EXPECT_EQ(tool::violations_text(rows, {}), "") << text_of(spec);
    const StageCosts costs = costs_of(spec, "f=1,b=2,s=0.3,t=0.2,transfer=0.1,collective=0.4");
    const Schedule lowered = lower(rows, costs, placement_for(spec));
    EXPECT_EQ(tool::violations_text(lowered, {.queues = Queues::Pair, .blocking = true}), "")
        << text_of(spec);
  });
}

// The table of the paper: 1F1B D, vocab-1 D + 2, vocab-2 D + 1, interlaced 1.5 D, on the first
// rank.
TEST(SharedHead, MicrobatchesInFlightAreThoseOfThePaper) {
  const auto in_flight = [](const std::string& family, std::size_t d, std::size_t rank) {
    const Schedule rows = generate(point(family, d, 4 * d));
    return tool::peak_holdings(rows, RankId{rank}).in_flight;
  };
  for (std::size_t d = 2; d <= 16; ++d)
    for (std::size_t r = 0; r < d; ++r) {
      EXPECT_EQ(in_flight("1f1b", d, r), d - r);
      EXPECT_EQ(in_flight("vocab_1", d, r), d + 2 - r);
      EXPECT_EQ(in_flight("vocab_2", d, r), d + 1 - r);
      EXPECT_EQ(in_flight("interlaced", d, r), 3 * d / 2 - r);
    }
}

// The table of the paper: the bubble of all of them is that of 1F1B, N (F + B) + (D - 1) (F + B)
// here. Two barriers may cost the last rank one F in warm-up, of the second of the two microbatches
// that it does before its first B.
TEST(SharedHead, AFreeOutputLayerLeavesTheStepOfOneForwardOneBackward) {
  for (std::size_t d = 2; d <= 8; ++d) {
    const std::size_t n = 5 * d;
    const double f1b = static_cast<double>(3 * (n + d - 1));
    const auto step = [&](const std::string& family) {
      const ScheduleSpec spec = point(family, d, n);
      return ms(timed(spec, costs_of(spec, "f=1,b=2,s=0,t=0")));
    };
    EXPECT_EQ(step("vocab_2"), f1b) << d;
    EXPECT_EQ(step("interlaced"), f1b) << d;
    EXPECT_GE(step("vocab_1"), f1b) << d;
    EXPECT_LE(step("vocab_1"), f1b + 1) << d;
  }
}

// S and T on every rank in each period; the paper: m max(F + B + S + T) + (p - 1) (F + B) and what
// the first microbatches wait.
TEST(SharedHead, EachMicrobatchAddsTheWorkOfOneRank) {
  for (const Family& known : shared_head_families())
    for (std::size_t d = 2; d <= 8; ++d) {
      const auto step = [&](std::size_t n) {
        const ScheduleSpec spec = point(known.name, d, n);
        return ms(timed(spec, costs_of(spec, "f=1,b=2,s=0.25,t=0.5")));
      };
      EXPECT_DOUBLE_EQ(step(10 * d) - step(9 * d), 3.75 * static_cast<double>(d))
          << known.name << " " << d;
    }
}

// Collectives up to F are hidden by vocab_1 and vocab_2 (the paper: "F >= all-reduce"), but not by
// ranks that stop together.
TEST(SharedHead, CollectivesHideBesideTheLayersButNotWhereRanksStopTogether) {
  const auto added = [](const std::string& family, const std::string& collective) {
    const auto step = [&](const std::string& text, std::size_t n) {
      const ScheduleSpec spec = point(family, 4, n);
      return ms(timed(spec, costs_of(spec, "f=1,b=2,s=0.25,t=0.25,collective=" + text)));
    };
    return (step(collective, 40) - step(collective, 20)) - (step("0", 40) - step("0", 20));
  };
  EXPECT_NEAR(added("vocab_1", "0.9"), 0, 1e-9);
  EXPECT_NEAR(added("vocab_2", "0.9"), 0, 1e-9);
  EXPECT_GE(added("interlaced", "0.9"), 20 * 0.9);
}

TEST(SharedHead, EstimateIsThatOfAPlainLoop) {
  std::mt19937 random(7);
  const auto any = [&](int most) {
    return Nanoseconds{std::uniform_int_distribution(0, most)(random)};
  };
  for_each_point([&](const ScheduleSpec& spec) {
    StageCosts costs = uniform_costs(spec.ranks, any(9), any(9), any(9), any(3));
    for (StageCost& stage : costs.stages) {
      stage.forward += any(20), stage.backward_input += any(20);
      stage.head_share = any(9), stage.head_rest = any(9);
    }
    costs.head = {family(spec.family).head_barriers, any(9), any(9), any(9)};
    EXPECT_EQ(step_time(timed(spec, costs)).count(), plain_loop(generate(spec), costs))
        << text_of(spec);
  });
}

// By hand: F 1, B 2, S 1, T 1, two ranks, two microbatches, one barrier. Rank 1 has F0 at 1, S0 at
// 2, F1 at 3, B0 at 4 to 6, S1 at 6 (rank 0 had F0, F1, then S0 at 2 and S1 at 4), T0 at 6 ...
TEST(SharedHead, WorkedExampleOnTwoRanks) {
  const ScheduleSpec spec = point("vocab_2", 2, 2);
  EXPECT_EQ(write_schedule(generate(spec)),
            "0F0,0F1,0S0,0T0,0S1,0B0,0T1,0B1\n"
            "1F0,1S0,1F1,1B0,1T0,1S1,1B1,1T1\n");
}

TEST(SharedHead, TextOfSharesIsReadAndWritten) {
  const Schedule rows = generate(point("vocab_1", 4, 6));
  EXPECT_EQ(read_schedule(write_schedule(rows), "test"), rows);
  EXPECT_EQ(to_string(head_share(StageId{3}, MicrobatchId{12})), "3S12");
  EXPECT_EQ(to_string(head_rest(StageId{0}, MicrobatchId{0})), "0T0");
}

/// What the judge says of these rows, with so many barriers.
std::string verdict(const std::string& text, std::size_t barriers) {
  const Schedule rows = read_schedule(text, "test");
  Requirements required = requirements_of(rows, /*lowered=*/false);
  required.stages.head_barriers = barriers;
  std::string all;
  for (const Violation& v : validate(rows, required))
    all += to_string(v.rank) + ":" + std::to_string(v.position) + " " + v.message + "\n";
  return all;
}

TEST(SharedHead, TheJudgeRefusesWhatRanksCannotDoTogether) {
  const std::string first = "0F0,0F1,0S0,0T0,0S1,0T1,0B0,0B1\n";
  const std::string last = "1F0,1F1,1S0,1T0,1S1,1T1,1B0,1B1\n";
  EXPECT_EQ(verdict(first + last, 2), "");
  EXPECT_EQ(verdict(first + last, 1), "");
  EXPECT_MESSAGE(verdict(first + last, 0));                                     // not shared
  EXPECT_MESSAGE(verdict("0F0,0F1,0S0,0S1,0T1,0B0,0B1\n" + last, 2));           // no T0
  EXPECT_MESSAGE(verdict("0F0,0F1,0T0,0S0,0S1,0T1,0B0,0B1\n" + last, 2));       // T before S
  EXPECT_MESSAGE(verdict("0F0,0F1,0S1,0T1,0S0,0T0,0B0,0B1\n" + last, 2));       // another order
  EXPECT_MESSAGE(verdict(first + "1S0,1F0,1F1,1T0,1S1,1T1,1B0,1B1\n", 2));      // S before F
  EXPECT_MESSAGE(verdict(first + "1F0,1F1,1S0,1B0,1T0,1S1,1T1,1B1\n", 2));      // B before T
  EXPECT_EQ(verdict(first + "1F0,1F1,1S0,1B0,1T0,1S1,1T1,1B1\n", 1), "");       // it may
  EXPECT_MESSAGE(verdict(first + "1F0,1F1,1S0,1S0,1T0,1S1,1T1,1B0,1B1\n", 2));  // twice
  EXPECT_MESSAGE(verdict("0F0,0F1,0S0,0T0,0REDUCE_S0,0S1,0T1,0B0,0B1\n" + last, 2));  // implied
}

// Rank 0 computes its share of microbatch 1 before it makes the value that microbatch 1 begins
// with.
TEST(SharedHead, ADeadlockThroughACollectiveIsExplained) {
  EXPECT_MESSAGE(verdict("0F0,0S0,0T0,0S1,0T1,0F1,0B0,0B1\n1F0,1S0,1T0,1F1,1S1,1T1,1B0,1B1\n", 2));
}

TEST(SharedHead, LoweringRefusesCostsOfAnotherOutputLayer) {
  const ScheduleSpec spec = point("vocab_1", 2, 2);
  const auto lowered = [&](const StageCosts& costs, const LoweringOptions& options = {}) {
    return message_of([&] { lower(generate(spec), costs, placement_for(spec), options); });
  };
  StageCosts costs = costs_of(spec, "f=1");
  EXPECT_MESSAGE(lowered(costs, {.transfers = TransferOrder::Torch}));
  costs.head->barriers = 1;
  EXPECT_MESSAGE(lowered(costs));
  costs.head.reset();
  EXPECT_MESSAGE(lowered(costs));
}

// Rank 0 of vocab_1 on two ranks: what F saves is 10, what S keeps for T 100, within S or T 1000.
TEST(SharedHead, MemoryHasWhatSharesKeepAndNeed) {
  const ScheduleSpec spec = point("vocab_1", 2, 1);
  StageCosts costs = costs_of(spec, "f=1");
  for (StageCost& stage : costs.stages) {
    stage.saved = Bytes{10}, stage.head_saved = Bytes{100}, stage.head_temporary = Bytes{1000};
    stage.parameters = Bytes{5};
  }
  for (StagePair& pair : costs.pairs) pair.bytes = pair.gradient_bytes = Bytes{0};
  costs.values.clear();
  const Schedule lowered = lower(generate(spec), costs, placement_for(spec));
  std::map<std::string, MemoryStep> steps;
  const MemoryCurve curve = memory(lowered, RankId{0}, costs, placement_for(spec));
  for (std::size_t p = 0; p < curve.steps.size(); ++p)
    steps[to_string(lowered.rows[0][p])] = curve.steps[p];
  EXPECT_EQ(steps.at("0F0").after, Bytes{15});
  EXPECT_EQ(steps.at("0S0").during, Bytes{1115});
  EXPECT_EQ(steps.at("0S0").after, Bytes{115});
  EXPECT_EQ(steps.at("0T0").during, Bytes{1115});
  EXPECT_EQ(steps.at("0T0").after, Bytes{15});
  EXPECT_EQ(steps.at("0B0").after, Bytes{5});
}

// Every optimizer step stands behind all T and B of its rank, also where gradients are reduced.
TEST(SharedHead, StepsAndReductionsComeBehindTheLastWeightGradient) {
  const ScheduleSpec spec = point("vocab_2", 3, 4);
  StageCosts costs = costs_of(spec, "f=1");
  costs.norm = Nanoseconds{1};
  const Schedule lowered =
      lower(generate(spec), costs, placement_for(spec), {.reduce_grad = ReduceGrad::EveryStage});
  EXPECT_EQ(tool::violations_text(lowered, {}), "");
  for (const auto& row : lowered.rows) {
    std::size_t gradients = 0, reduced = 0;
    for (std::size_t p = 0; p < row.size(); ++p)
      for_each_action(row[p], [&](const Action& a) {
        if (makes_weight_gradient(a.op)) gradients = p;
        if (a.op == Op::ReduceGrad) reduced = p;
      });
    EXPECT_GT(reduced, gradients);
  }
}

}  // namespace
}  // namespace pfeife::shared_head
