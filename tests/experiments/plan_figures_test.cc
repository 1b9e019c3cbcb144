// FLOP/s and memory in parts, of a model whose figures torch or plain counting gives.
#include <gmock/gmock.h>

#include "planner/io/results/results.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

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

}  // namespace
}  // namespace pfeife
