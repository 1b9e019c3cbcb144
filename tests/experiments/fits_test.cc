// `pfeife-exp fits`, as a user types it.
#include <gmock/gmock.h>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Fits : public ProgramTest {
 protected:
  Outcome fits(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fits");
    return run(arguments);
  }
  static std::string config_json(const std::string& name) {
    return PFEIFE_SOURCE_DIR "/tests/data/hugging_face/" + name + ".json";
  }
  static std::string cluster(const std::string& name) {
    return (configs() / "clusters" / (name + ".yaml")).string();
  }
};

// Llama 3 70B has 70,553,706,496 parameters; 18 bytes each are 1,183 GiB. A card of 80 GiB less 2
// and 2 % may reserve 76.44 GiB: 1.05 x 1,182.7 / 76.44 = 16.2.
TEST_F(Fits, SaysHowManyDevicesTheStatesNeed) {
  const Outcome outcome = fits({config_json("llama3_70b"), cluster("a100_sxm4_80gb_hosts"),
                                "--devices", "8", "--sequence", "8192"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1,183 GiB of weights, gradients and optimizer state"));
  EXPECT_THAT(outcome.out, HasSubstr("at least 17 devices"));
}

// 8,030,261,248 parameters of 18 bytes are 135 GiB, which eight cards have.
TEST_F(Fits, HasARowForEachClusterAndNumberOfDevicesWithItsPrice) {
  const Outcome outcome =
      fits({config_json("llama3_8b"), cluster("a100_sxm4_80gb_hosts"), cluster("h100_sxm_hosts"),
            "--devices", "8,16", "--sequence", "8192", "--batch", "64", "--price", "3.6,7.2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("a100_sxm4_80gb_hosts +8 .*\n +16 "));
  EXPECT_THAT(outcome.out, ContainsRegex("h100_sxm_hosts +8 .*\n +16 "));
  EXPECT_THAT(outcome.out, HasSubstr("1e9 tokens"));
  EXPECT_THAT(outcome.out, HasSubstr("how sure: steps of published meshes of A100 were"));
  EXPECT_THAT(outcome.out, HasSubstr("how sure: steps of published meshes of H100 were"));
}

TEST_F(Fits, AsksForWhatIsNotKnown) {
  const Outcome sequence = fits({config_json("llama3_8b"), cluster("h100_sxm_hosts")});
  EXPECT_EQ(sequence.code, 2);
  EXPECT_THAT(sequence.err, HasSubstr("--sequence 8192"));
  EXPECT_EQ(fits({config_json("llama3_8b")}).code, 2);
  const Outcome nowhere = fits({"nowhere", cluster("h100_sxm_hosts")});
  EXPECT_THAT(nowhere.err, HasSubstr("there is no file \"nowhere\""));
}

// A layer table is one pipeline; more devices than the cluster has are not there.
TEST_F(Fits, PlansAPipelineOfAModelOfLayers) {
  const Outcome outcome =
      fits({(configs() / "tables/two_stage.csv").string(),
            (configs() / "clusters/a100_sxm4_40gb_x8.yaml").string(), "--devices", "2,16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("samples/s"));
  EXPECT_THAT(outcome.out, HasSubstr("16: the cluster"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("how sure")));  // its times are given
}

}  // namespace
}  // namespace pfeife
