#include "planner/ir/result/result_engine.h"

#include <gtest/gtest.h>

#include "tests/support/mixed_engines.h"

namespace pfeife {
namespace {

using std::chrono::milliseconds;

CaseRecord case_of(std::vector<PlanRecord> plans) { return {.plans = std::move(plans)}; }

TEST(ResultEngine, IsTheBestThatAllPlansThatFitHave) {
  EXPECT_EQ(compared_engine(mixed_case()), TraceSource::Simulated);
  EXPECT_EQ(compared_engine(measured_case()), TraceSource::Measured)
      << "what does not fit cannot be measured, and is no rival";
  EXPECT_EQ(compared_engine(case_of({})), TraceSource::Estimated);
  EXPECT_EQ(compared_engine(case_of({{}, plan_with_times("a", 1, 2)})), TraceSource::Simulated)
      << "a plan that cannot be has no say";
  EXPECT_EQ(compared_engine(case_of({plan_with_times("a", 1, 2, 3, false), {}})),
            TraceSource::Measured)
      << "nothing fits";
  EXPECT_EQ(compared_engine(case_of({plan_with_times("a", 1, {}, 3), plan_with_times("b", 1, 2)})),
            TraceSource::Estimated)
      << "one simulated, the other measured";
}

// Every subset of engines for three plans that fit or not: by the definition, engine by engine.
TEST(ResultEngine, IsThatOfTheDefinitionForAllCasesOfThreePlans) {
  for (int code = 0; code < 16 * 16 * 16; ++code) {
    std::vector<PlanRecord> plans;
    for (int p = 0; p < 3; ++p) {
      const int bits = code >> (4 * p) & 15;
      const auto time = [&](int bit) { return bits & bit ? std::optional(7) : std::nullopt; };
      plans.push_back(plan_with_times("p", time(1), time(2), time(4), (bits & 8) != 0));
    }
    bool any_fits = false;
    for (const PlanRecord& plan : plans) any_fits |= plan.row.feasible && has_time(plan.row);
    TraceSource expected = TraceSource::Estimated;
    for (const TraceSource engine : {TraceSource::Simulated, TraceSource::Measured}) {
      bool all = true, any = false;
      for (const PlanRecord& plan : plans) {
        const bool counts = has_time(plan.row) && (plan.row.feasible || !any_fits);
        any |= counts;
        all &= !counts || time_of(plan.row, engine);
      }
      if (all && any) expected = engine;
    }
    EXPECT_EQ(compared_engine(case_of(plans)), expected) << code;
  }
}

TEST(ResultEngine, TheBestPlanIsTheFastestOfOneEngine) {
  EXPECT_EQ(best_plan(mixed_case()), 0U);
  EXPECT_EQ(best_plan(measured_case()), 1U);
  EXPECT_EQ(compared_time(measured_case(), measured_case().plans[3]), std::nullopt);
  CaseRecord estimated = mixed_case();
  estimated.plans[2].row.simulate.reset();
  EXPECT_EQ(compared_time(estimated, estimated.plans[0]), milliseconds{240});
  EXPECT_EQ(best_plan(estimated), 1U);
}

// 250 / 1000 - 1 = -75 %; 240 / 1000 - 1 = -76 %.
TEST(ResultEngine, AMeasuredTimeStandsBesideWithTheErrorOfItsPrediction) {
  CaseRecord record = mixed_case();
  EXPECT_TRUE(measured_beside(record, record.plans[0]));
  EXPECT_FALSE(measured_beside(record, record.plans[1])) << "was not measured";
  EXPECT_FALSE(measured_beside(measured_case(), measured_case().plans[0]));
  const ResultRow& row = record.plans[0].row;
  EXPECT_NEAR(error_of(row, TraceSource::Simulated).value(), -0.75, 1e-12);
  EXPECT_NEAR(error_of(row, TraceSource::Estimated).value(), -0.76, 1e-12);
  EXPECT_NEAR(error_of(row, TraceSource::Measured).value(), -0.75, 1e-12);
  EXPECT_EQ(error_of(record.plans[1].row, TraceSource::Simulated), std::nullopt);
}

TEST(ResultEngine, AHeadingNamesThoseOfItsCases) {
  const CaseRecord estimated = case_of({plan_with_times("a", 1, {})}), impossible = case_of({{}});
  const auto text = [](std::vector<CaseRecord> cases) { return engine_text(cases); };
  EXPECT_EQ(text({mixed_case()}), "simulated");
  EXPECT_EQ(text({mixed_case(), impossible}), "simulated");
  EXPECT_EQ(text({estimated, measured_case(), mixed_case()}), "measured or simulated or estimated");
  EXPECT_EQ(text({impossible}), "estimated");
}

// 6 samples in 250 ms.
TEST(ResultEngine, RatesAreOfItsTime) {
  const ResultRow row = mixed_case().plans[0].row;
  EXPECT_DOUBLE_EQ(samples_per_second(row, TraceSource::Simulated).value(), 24);
  EXPECT_DOUBLE_EQ(samples_per_second(row, TraceSource::Measured).value(), 6);
  EXPECT_EQ(samples_per_second({}, TraceSource::Estimated), std::nullopt);
}

// By the chosen plans alone: the second case's was not measured.
TEST(ResultEngine, CasesAreComparedByWhatTheirChosenPlansHave) {
  std::vector<CaseRecord> cases{mixed_case(), measured_case()};
  EXPECT_EQ(compared_engine(cases), TraceSource::Measured);
  cases[1].plans[0].row.measure.reset();
  EXPECT_EQ(compared_engine(cases), TraceSource::Simulated);
}

}  // namespace
}  // namespace pfeife
