// Published figures made those of a system that was measured: `calibration`, `plan_with`, --fit.
#include <gmock/gmock.h>

#include "planner/io/results/results.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class CalibrationTest : public ProgramTest {
 protected:
  CalibrationTest() {
    write("small.yaml", "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                            "\ncluster: " + (configs() / "clusters/3090_x8.yaml").string() +
                            "\ncases: {devices: [1, 4], microbatches: [4]}\n"
                            "plan: {families: [1f1b], stages_per_rank: 1}\n"
                            "baselines: [gpipe]\nsimulation: {launch_overhead: 0 us}\n");
  }

  CaseRecord record(const std::string& devices, const std::vector<std::string>& settings) const {
    std::vector<std::string> arguments{"small.yaml", "--out", "out", "--set",
                                       "cases.devices=" + devices};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return case_from_json(read("out/devices=" + devices + ",microbatches=4/case.json"))
        .value_or(CaseRecord{});
  }
  std::string error(const std::vector<std::string>& settings) const {
    std::vector<std::string> arguments{"small.yaml", "--list"};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  }
};

double ms(const std::optional<Nanoseconds>& time) { return milliseconds(time.value()); }

// One device: four forwards, four backwards, the optimizer, nothing else. Twice as slow with 3 ms
// for each execution: 2 T + 8 x 3 ms.
TEST_F(CalibrationTest, ComputeMultipliesAllTimesAndTheOverheadIsOfEachStageExecution) {
  const CaseRecord plain = record("1", {});
  const CaseRecord slow = record("1", {"calibration={compute: 2, stage_overhead: 3 ms}"});
  for (std::size_t plan = 0; plan < 2; ++plan) {
    const double before = ms(plain.plans.at(plan).row.simulate);
    EXPECT_GT(before, 0);
    EXPECT_NEAR(ms(slow.plans.at(plan).row.simulate), 2 * before + 24, 0.01);
  }
  EXPECT_EQ(plain.calibration, "");
  EXPECT_EQ(slow.calibration, "compute x 2, 3 ms a stage execution");
}

TEST_F(CalibrationTest, TheFirstEntryThatFitsKindAndPrecisionHolds) {
  const double before = ms(record("1", {}).plans.front().row.simulate);
  const std::string others =
      "calibration=[{precision: tf32, compute: 7}, {device_kind: rtx3090, compute: 3}, {compute: "
      "5}]";
  EXPECT_NEAR(ms(record("1", {others}).plans.front().row.simulate), 3 * before, 0.01);
}

// 50 ms an execution would make any split pay; the plan of four devices stays that of none.
TEST_F(CalibrationTest, APlanMadeWithPublishedFiguresIsPricedWithCalibratedOnes) {
  const std::string key = "calibration={compute: 1.5, stage_overhead: 50 ms}";
  const PlanRecord plain = record("4", {"select_by=estimate"}).plans.front();
  const CaseRecord published = record("4", {key, "plan_with=published"});
  const PlanRecord& plan = published.plans.front();
  EXPECT_EQ(plan.row.cuts, plain.row.cuts);
  EXPECT_EQ(plan.row.knobs, plain.row.knobs);
  // Seven forwards and backwards follow one another on the way through four stages.
  EXPECT_GT(ms(plan.row.simulate), ms(plain.row.simulate) + 14 * 50);
  EXPECT_FALSE(plan.row.lower_bound) << "it is a bound for other costs";
  EXPECT_TRUE(record("4", {key}).plans.front().row.lower_bound);
  EXPECT_THAT(published.calibration, HasSubstr("planned with published figures"));
}

TEST_F(CalibrationTest, FitFindsTheFiguresThatTheRowsWereMadeWith) {
  const std::string key = "calibration={compute: 1.25, stage_overhead: 0.2 ms}";
  std::string rows = "case,plan,step_ms\n";
  for (const std::string devices : {"1", "4"}) {
    const CaseRecord made = record(devices, {key, "plan_with=published"});
    const PlanRecord& plan = made.plans.at(devices == "1" ? 0 : 1);
    rows += "\"" + made.name + "\"," + plan.row.plan + "," + std::to_string(ms(plan.row.simulate)) +
            "\n";
  }
  write("rows.csv", rows);
  const Outcome fitted = run({"small.yaml", "--fit", "rows.csv"});
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  // Steps are in whole nanoseconds, so the last digit may be another one.
  const auto near_compute = ::testing::AnyOf(HasSubstr("calibration: {compute: 1.2500"),
                                             HasSubstr("calibration: {compute: 1.2499"));
  EXPECT_THAT(fitted.out, near_compute);
  EXPECT_THAT(fitted.out, HasSubstr("stage_overhead: 0.2000 ms, origin: \"planned of devices=1"));
  // What the config says is not changed.
  const Outcome given =
      run({"small.yaml", "--fit", "rows.csv", "--set", "calibration={stage_overhead: 0.2 ms}"});
  EXPECT_THAT(given.out, near_compute);
  const Outcome overhead =
      run({"small.yaml", "--fit", "rows.csv", "--set", "calibration={compute: 1.25}"});
  EXPECT_THAT(overhead.out, HasSubstr("stage_overhead: 0.2000 ms"));
  const Outcome nothing = run({"small.yaml", "--fit", "rows.csv", "--set",
                               "calibration={compute: 1.25, stage_overhead: 0.2 ms}"});
  EXPECT_THAT(nothing.err, HasSubstr("nothing is left to fit"));
}

TEST_F(CalibrationTest, MistakesSayWhereTheyAreAndWhatWouldDo) {
  EXPECT_THAT(error({"calibration=1.03"}), HasSubstr("expected a map such as"));
  EXPECT_THAT(error({"calibration={}"}), HasSubstr("it changes nothing; give compute"));
  EXPECT_THAT(error({"calibration={compute: 1033}"}), HasSubstr("calibration.compute"));
  EXPECT_THAT(error({"calibration={device_kind: rtx3091, compute: 1}"}),
              HasSubstr("did you mean \"rtx3090\"?"));
  EXPECT_THAT(error({"plan_with=published"}), HasSubstr("nothing is calibrated"));
  EXPECT_THAT(error({"calibration={compute: 1}", "plan_with=published", "select_by=simulate"}),
              HasSubstr("leave select_by out"));
  EXPECT_THAT(error({"model=" + (configs() / "tables/two_stage.csv").string(),
                     "calibration={compute: 1.1}"}),
              HasSubstr("leave compute out"));
  write("rows.csv", "case,plan,step_ms\nnone,planned,3\n");
  EXPECT_THAT(run({"small.yaml", "--fit", "rows.csv"}).err,
              HasSubstr("rows.csv:2:1: no case is called \"none\""));
  write("rows.csv", "case,plan,step_ms\n\"devices=1,microbatches=4\",1f1b,3\n");
  EXPECT_THAT(run({"small.yaml", "--fit", "rows.csv"}).err,
              HasSubstr("has no plan \"1f1b\"; use planned, gpipe"));
}

}  // namespace
}  // namespace pfeife
