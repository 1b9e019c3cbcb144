#include <gmock/gmock.h>

#include "experiments/show/texts.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

CaseRecord of(std::size_t devices, int ms, int bound_ms, std::size_t microbatches = 8) {
  CaseRecord record;
  record.name = "a case";
  PlanRecord plan;
  plan.row.microbatches = microbatches;
  plan.row.family = "zb_h1";
  plan.row.devices = devices;
  plan.row.feasible = ms > 0;
  if (ms > 0) plan.row.estimate = Nanoseconds{std::int64_t{1'000'000} * ms};
  if (bound_ms > 0) plan.row.lower_bound = Nanoseconds{std::int64_t{1'000'000} * bound_ms};
  record.plans.push_back(plan);
  return record;
}

std::string answer(const std::vector<CaseRecord>& cases) {
  return fewest_devices(cases, Nanoseconds{100'000'000}, 200);
}

TEST(FewestDevices, AreTheFirstWhoseStepIsShorterWithTheReasonWhyNotFewer) {
  EXPECT_EQ(
      answer({of(4, 60, 50), of(1, 0, 0), of(2, 120, 110), of(3, 80, 70)}),
      "fewest devices for a step below 100.00 ms, of those tried\n"
      "  3 devices: zb_h1, 80.000 ms estimated; 2 devices: 120.00 ms estimated, and no plan is "
      "below 110.00 ms\n");
  EXPECT_THAT(answer({of(2, 120, 90), of(3, 80, 70)}),
              HasSubstr("2 devices: 120.00 ms estimated is the best found; not proven"));
  EXPECT_THAT(answer({of(1, 0, 0), of(2, 99, 70)}), HasSubstr("; 1 device: no plan fits"));
  EXPECT_THAT(answer({of(1, 99, 70)}), HasSubstr("  1 device: zb_h1, 99.000 ms estimated\n"));
}

// 100 ms is not below 100 ms.
TEST(FewestDevices, MayBeNoneOfThoseTried) {
  EXPECT_THAT(answer({of(1, 120, 50), of(2, 100, 50)}),
              HasSubstr("none of 2 devices and fewer; 2"));
}

TEST(FewestDevices, AreOfCasesThatDifferInTheDevicesAlone) {
  EXPECT_EQ(answer({of(1, 120, 110, 4), of(1, 90, 80, 2), of(2, 70, 60, 4)}),
            "fewest devices for a step below 100.00 ms, of those tried\n"
            "  microbatches 4: 2 devices: zb_h1, 70.000 ms estimated; 1 device: 120.00 ms "
            "estimated, and no plan is below 110.00 ms\n"
            "  microbatches 2: 1 device: zb_h1, 90.000 ms estimated\n");
}

TEST(FewestDevices, AreNamedByWhatTellsTheCasesApart) {
  CaseRecord half = of(1, 90, 80), full = of(1, 120, 110);
  half.swept = {{"training.precision", "bf16_amp"}, {"plan.recompute", "full"}};
  full.swept = {{"training.precision", "fp32"}, {"plan.recompute", "full"}};
  EXPECT_EQ(answer({full, half}),
            "fewest devices for a step below 100.00 ms, of those tried\n"
            "  training.precision fp32: none of 1 device; 1 device: 120.00 ms estimated, and no "
            "plan is below 110.00 ms\n"
            "  training.precision bf16_amp: 1 device: zb_h1, 90.000 ms estimated\n");
}

// Two devices were measured, three were not: both are compared by estimates, of which two have
// enough; 80 / 160 - 1 = -50 %.
TEST(FewestDevices, AreFoundByOneEngine) {
  CaseRecord two = of(2, 80, 70);
  two.plans[0].row.measure = Nanoseconds{160'000'000};
  EXPECT_THAT(answer({of(1, 120, 110), two, of(3, 60, 50)}),
              HasSubstr("  2 devices: zb_h1, 80.000 ms estimated, measured 160.00 ms (error -50.0 "
                        "%); 1 device: "));
  CaseRecord three = of(3, 60, 50);
  three.plans[0].row.measure = Nanoseconds{90'000'000};
  EXPECT_THAT(answer({two, three}), HasSubstr("  3 devices: zb_h1, 90.000 ms measured; 2 devices: "
                                              "160.00 ms measured is the best found"));
}

class StepBelow : public ProgramTest {};

TEST_F(StepBelow, IsAnsweredBelowTheTable) {
  const Outcome outcome =
      run({(configs() / "two_stage.yaml").string(), "--set", "step_below=1 s", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("fewest devices for a step below 1000.0 ms"));
}

}  // namespace
}  // namespace pfeife
