// FLOP/s and memory in parts, of a model whose figures torch or plain counting gives.
#include "experiments/plans/plan_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/estimate/memory.h"
#include "planner/io/results/results.h"
#include "planner/ir/schedule/lower.h"
#include "planner/schedules/families.h"
#include "tests/experiments/program.h"
#include "tests/ir/rows.h"

namespace pfeife {
namespace {

using testing::rows;

/// The parameters of TinyGpt (configs/models/tiny_models.py): embedding, positions, four layers of
/// two norms and four products, a norm; the head is the embedding.
constexpr std::int64_t kProducts = 16 * 48 + 16 * 16 + 16 * 64 + 64 * 16;  // weights of a layer
constexpr std::int64_t kLayer = kProducts + (48 + 16 + 64 + 16) + 2 * 32;
constexpr std::int64_t kParameters = 61 * 16 + 12 * 16 + 4 * kLayer + 32;
/// FLOPs of the products of a layer and the head.
constexpr std::int64_t kCopied = 4 * kProducts + 61 * 16;
/// FLOPs of a microbatch of two, as torch.utils.flop_counter counts
/// (experiments/studies/flop_check/flops.csv).
constexpr double kFlops = 710'400 + 1'420'800;

class Figures : public ProgramTest {
 protected:
  CaseRecord record(const std::string& precision) const {
    const Outcome outcome =
        run({"tiny.yaml", "--out", "out", "--set", "training.precision=" + precision});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return case_from_json(read("out/devices=1,microbatches=4/case.json")).value_or(CaseRecord{});
  }
  Figures() {
    write("tiny.yaml", "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                           "\ncluster: " + (configs() / "clusters/3090_x8.yaml").string() +
                           "\ncases: {devices: [1], microbatches: [4]}\n"
                           "plan: {families: [1f1b], stages_per_rank: 1}\nbaselines: [gpipe]\n");
  }
};

TEST_F(Figures, FlopsAreThoseOfTorchAndUtilizationIsOfThePublishedPeak) {
  for (const PlanRecord& plan : record("fp32").plans) {
    const double step = seconds(plan.row.simulate.value());
    EXPECT_NEAR(plan.figures.rate.value().value * step / (4 * kFlops), 1, 1e-9);
    EXPECT_NEAR(plan.figures.utilization.value() * 35.6e12 * step / (4 * kFlops), 1, 1e-9);
  }
}

TEST_F(Figures, MemoryIsInPartsAndAutocastKeepsACopyOfEachProductsWeightsAMicrobatch) {
  for (const std::string precision : {"fp32", "fp16_amp"}) {
    const CaseRecord found = record(precision);
    for (const PlanRecord& plan : found.plans) {
      ASSERT_EQ(plan.figures.memory.size(), 1U);
      const MemoryContents& parts = plan.figures.memory.front();
      EXPECT_EQ(parts.parameters.value, 4 * kParameters);
      EXPECT_EQ(parts.gradients.value, 4 * kParameters);
      EXPECT_EQ(parts.optimizer.value, 8 * kParameters);
      const std::int64_t live = plan.row.plan == "gpipe" ? 4 : 1;
      EXPECT_EQ(parts.autocast_copies.value, precision == "fp32" ? 0 : live * 2 * kCopied);
      EXPECT_GT(parts.saved.value, 0);
      EXPECT_EQ(parts.total(), plan.row.reserved);
      EXPECT_EQ(parts.total() - parts.segments, plan.row.peak_memory);
    }
  }
  EXPECT_EQ(result("out", "gpipe", "parameters_bytes_of_rank"), std::to_string(4 * kParameters));
  EXPECT_EQ(result("out", "gpipe", "autocast_copies_bytes_of_rank"), std::to_string(8 * kCopied));
}

// Parameters, gradients and two moments are four times the parameters in any rule.
TEST_F(Figures, ThePeakByTheReferenceRuleStandsBesideOurs) {
  const PlanRecord plan = record("fp32").plans.front();
  ASSERT_EQ(plan.figures.reference_peak.size(), 1U);
  EXPECT_GT(plan.figures.reference_peak.front().value, 16 * kParameters);
  const Outcome shown =
      run({"tiny.yaml", "--out", "out", "--set", "training.precision=fp32", "--columns",
           "step,span,no_optimizer,tflops,mfu,reference_peak,parameters,gradients,optimizer,saved,"
           "copies,buffers,temporary,segments,context,communicators"});
  EXPECT_THAT(shown.out, ::testing::HasSubstr("TFLOP/s a device"));
  EXPECT_THAT(shown.out, ::testing::HasSubstr("peak by reference rule"));
}

// What fills a rank's memory at its peak.

using ns = Nanoseconds;

Plan plan_with(Schedule schedule) {
  Plan plan;
  plan.placement = *placement_of(schedule);
  plan.schedule = std::move(schedule);
  return plan;
}

StageCosts costs_of(std::size_t stages) {
  StageCosts costs = uniform_costs(stages, ns{1}, ns{1}, ns{1}, ns{1});
  for (StageCost& stage : costs.stages) {
    stage.parameters = Bytes{1000}, stage.gradients = Bytes{300};
    stage.optimizer_state = Bytes{2000};
    stage.saved = Bytes{100}, stage.weight_saved = Bytes{40};
    stage.temporary = PassBytes::same(Bytes{7});
  }
  for (StageValue& value : costs.values) value.bytes = value.gradient_bytes = Bytes{5};
  return costs;
}

// Rank 0 at 0F1: two microbatches saved, the value that it makes still to be sent, 7 temporary.
// Rank 1 at 1F1: what 1W0 waits for, one microbatch saved, the buffer that it reads.
TEST(MemoryContents, AreThoseOfTheCellWithMostMemory) {
  const Plan plan =
      plan_with(rows({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0I0 0W0 0RECV_B1 0I1 0W1",
                      "1RECV_F0 1F0 1I0 1SEND_B0 1RECV_F1 1F1 1W0 1I1 1SEND_B1 1W1"}));
  const auto ranks = memory_contents(plan, costs_of(2));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0], (MemoryContents{.parameters = Bytes{1000},
                                      .gradients = Bytes{300},
                                      .optimizer = Bytes{2000},
                                      .saved = Bytes{200},
                                      .held_for_weights = Bytes{0},
                                      .buffers = Bytes{5},
                                      .temporary = Bytes{7}}));
  EXPECT_EQ(ranks[1], (MemoryContents{.parameters = Bytes{1000},
                                      .gradients = Bytes{300},
                                      .optimizer = Bytes{2000},
                                      .saved = Bytes{100},
                                      .held_for_weights = Bytes{40},
                                      .buffers = Bytes{5},
                                      .temporary = Bytes{7}}));
}

TEST(MemoryContents, AddUpToThePeakAndNothingIsNegative) {
  for (const char* family : {"gpipe", "1f1b", "zb_h1"}) {
    ScheduleSpec spec{.family = family, .ranks = 4, .microbatches = 8, .stages_per_rank = 1};
    const StageCosts costs = costs_of(4);
    const Schedule computed = generate(spec);
    const Plan plan = plan_with(lower(computed, costs, *placement_of(computed)));
    const auto ranks = memory_contents(plan, costs);
    ASSERT_EQ(ranks.size(), 4U);
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_EQ(ranks[r].total(), memory(plan.schedule, RankId{r}, costs, plan.placement).peak());
      for (const Bytes term :
           {ranks[r].parameters, ranks[r].gradients, ranks[r].optimizer, ranks[r].saved,
            ranks[r].held_for_weights, ranks[r].buffers, ranks[r].temporary})
        EXPECT_GE(term, Bytes{0}) << family << " rank " << r;
      EXPECT_EQ(ranks[r].parameters, Bytes{1000});
    }
  }
}

}  // namespace
}  // namespace pfeife
