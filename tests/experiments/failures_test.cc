// `pfeife-exp failures`: the plan for one device less, and samples per second by hand.
#include "experiments/sweep/failures.h"

#include <gmock/gmock.h>

#include "experiments/pfeife.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

// Four layers of 2 ms F and 4 ms B, eight microbatches, links of no latency to speak of: 1F1B takes
// (8 + D - 1) times the slowest stage, so on four devices 11 x 6 ms, on three (stages of 1, 1 and 2
// layers) about 10 x 12 ms less what the short stages are ahead.
class Failures : public ProgramTest {
 protected:
  Failures() {
    write("layers.csv",
          "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
          "temporary_bytes\na,2,4,8,9,9,0,0\nb,2,4,8,9,9,0,0\nc,2,4,8,9,9,0,0\nd,2,4,0,9,9,0,0\n");
    write("step.yaml", "version: 1\nmodel: layers.csv\ncluster: " +
                           (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string() +
                           "\ncases: {devices: 4, microbatches: 8}\n"
                           "plan: {families: [1f1b], stages_per_rank: [1]}\n");
  }
};

TEST_F(Failures, GoOnWithThePlanOfOneDeviceLess) {
  const FailuresQuestion question{.config = folder_ / "step.yaml",
                                  .rate = {.stops = 1, .days = 1, .devices = 4},
                                  .recovery = {.save = 2, .restart = 60, .repair = 3660},
                                  .out = folder_ / "plans"};
  const FailuresAnswer answer = plan_for_failures(question, 2);
  EXPECT_EQ(answer.full.devices, 4U);
  EXPECT_EQ(answer.less.devices, 3U);
  EXPECT_NEAR(pfeife::milliseconds(answer.full.step), 66, 1);
  EXPECT_GT(answer.less.step, answer.full.step);
  EXPECT_DOUBLE_EQ(answer.between, 86'400);
  EXPECT_NEAR(answer.full.rate, 8 / 0.066, 2);
  EXPECT_NEAR(answer.shares.interval, 587.88, 0.01);  // sqrt(2 x 2 x 86400)
  // 2 / 587.88 saving, 293.94 / 86400 again, 60 / 86400 restarting: 0.75 % together.
  EXPECT_NEAR(answer.shares.useful, 0.99250, 1e-5);
  // 86,400 of 90,060 seconds with all devices, 3,600 with three.
  EXPECT_NEAR(answer.waits / answer.full.rate, 0.99250 * 86'400 / 90'060, 1e-5);
  EXPECT_NEAR(answer.goes_on - answer.waits, answer.less.rate * 0.99250 * 3600 / 90'060, 1e-3);
  EXPECT_EQ(answer.without_replica, 0);
  const Planned three = load_plan(folder_ / "plans" / "devices=3");
  EXPECT_EQ(three.best().plan.estimate, answer.less.step);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "plans" / "devices=4" / "plan.yaml"));
}

TEST_F(Failures, OfReplicasMayLeaveAReplicaOut) {
  const FailuresQuestion question{.config = folder_ / "step.yaml",
                                  .settings = {"parallel.dp=2"},
                                  .recovery = {.save = 30, .restart = 600, .repair = 14'400}};
  const FailuresAnswer answer = plan_for_failures(question, 2);
  EXPECT_EQ(answer.replicas, 2U);
  EXPECT_NEAR(answer.between, StopRate{}.seconds_between(8), 1);
  EXPECT_GT(answer.without_replica, answer.waits);
  EXPECT_LT(answer.without_replica, answer.full.rate);
  // Half of the samples meanwhile, beside those of one device less in each.
  EXPECT_NEAR((answer.without_replica - answer.waits) / (answer.goes_on - answer.waits),
              answer.full.rate / 2 / answer.less.rate, 1e-6);
  // A fleet of 2,048 pairs of such replicas: 16,384 devices stop every 3.09 h.
  FailuresQuestion fleet = question;
  fleet.fleet = 16'384;
  const FailuresAnswer all = plan_for_failures(fleet, 2);
  EXPECT_EQ(all.replicas, 4096U);
  EXPECT_TRUE(all.several_lost);
  EXPECT_THAT(failures_text(all), HasSubstr("several devices are lost at once"));
  EXPECT_FALSE(answer.several_lost);
  EXPECT_NEAR(all.between / 3600, 3.0931, 1e-4);
  EXPECT_NEAR(all.full.rate, 2048 * answer.full.rate, 1e-6 * all.full.rate);
  // Every 11,135 s: sqrt(2 x 30 x 11135) = 817 s of steps, 30 of 817 saving, 409 of 11,135 again,
  // 600 of 11,135 restarting: 12.7 % lost. 11,135 of 25,535 seconds with all devices, 13,800 with
  // all replicas but one in 4,096.
  EXPECT_NEAR(all.shares.useful, 0.8727, 1e-4);
  EXPECT_NEAR(all.without_replica / all.full.rate,
              0.8727 * (11'135 + 13'800 * 4095.0 / 4096) / 25'535, 1e-3);
  fleet.fleet = 16'385;
  EXPECT_THROW(plan_for_failures(fleet, 2), ConfigError);
}

TEST_F(Failures, AreAnsweredOnTheCommandLine) {
  const std::vector<std::string> words{"failures",  "step.yaml", "--save",   "30 s",
                                       "--restart", "600 s",     "--repair", "14400 s"};
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("waits for the device"));
  EXPECT_THAT(outcome.out, HasSubstr("goes on with 3 devices"));
  EXPECT_THAT(outcome.out, HasSubstr("a failure every 12669.3 h"));
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    const Outcome wrong = run(all);
    EXPECT_EQ(wrong.code, 2) << wrong.out;
    return wrong.err;
  };
  EXPECT_THAT(refused({"--set", "cases.devices=1"}), HasSubstr("at least 2"));
  EXPECT_THAT(refused({"--stops", "1e9"}), HasSubstr("before a checkpoint is of use"));
  EXPECT_THAT(refused({"--days", "0"}), HasSubstr("--days"));
  EXPECT_EQ(run({"failures", "step.yaml", "--save", "30"}).code, 2);
  EXPECT_THAT(run({"failures", "step.yaml"}).err, HasSubstr("how long"));
}

}  // namespace
}  // namespace pfeife
