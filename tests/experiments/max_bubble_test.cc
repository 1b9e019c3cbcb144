// plan.max_bubble: a plan that keeps it, and what is said where none does.
#include <gmock/gmock.h>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

/// A stage of 1 ms forward and 2 ms backward before one of twice as much; 1F1B with 8 microbatches
/// on two devices, by hand: the step is 1 + 8 x 6 + 2 = 51 ms, of which the ranks compute 24 and
/// 48, a bubble of 1 - 72 / 102 = 29.4 %.
class MaxBubble : public ProgramTest {
 protected:
  MaxBubble() {
    write("layers.csv",
          "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,"
          "saved_bytes,weight_saved_bytes,temporary_bytes\n"
          "a,1,1,1,9,9,90000000,0,0\nb,2,2,2,9,9,90000000,0,0\n");
    write("config.yaml", "version: 1\nmodel: layers.csv\ncluster: " +
                             (configs() / "clusters" / "laptop.yaml").string() +
                             "\ncases: {devices: 2, microbatches: 8}\nbaselines: []\n"
                             "engines: [estimate]\n"
                             "plan: {families: [1f1b], stages_per_rank: [1]}\n");
  }
  Outcome with(const std::string& max_bubble) {
    return run(
        {"config.yaml", "--out", "out", "--set", "plan.max_bubble=" + max_bubble, "--verbose"});
  }
  double figure(const std::string& column) const {
    return std::stod(result("out", "planned", column));
  }
};

TEST_F(MaxBubble, APlanThatKeepsItIsTaken) {
  const Outcome outcome = with("0.3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NEAR(figure("bubble_fraction"), 1 - 72.0 / 102, 0.005);
  EXPECT_NEAR(figure("estimate_ms"), 51, 0.3);
}

TEST_F(MaxBubble, IfNoPlanKeepsItThereIsNoneAndTheLeastIsSaid) {
  const Outcome none = with("0.29");
  EXPECT_NE(none.code, 0);
  EXPECT_EQ(result("out", "planned", "estimate_ms"), "");
  EXPECT_THAT(none.err,
              HasSubstr("at most 29.0 % (plan.max_bubble): the least is 29.4 %, of 1f1b"));
  EXPECT_THAT(none.out, HasSubstr("1f1b: its bubble of 29.4 % is above plan.max_bubble"));
  EXPECT_THAT(run({"config.yaml", "--set", "plan.max_bubble=1.5"}).err, HasSubstr("from 0 to 1"));
}

}  // namespace
}  // namespace pfeife
