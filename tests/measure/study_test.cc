// The study of experiments/studies/accuracy_cpu at a size that takes seconds: its rounds, not its
// figures.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Study : public ProgramTest {
 protected:
  Study() {
    setenv("PFEIFE_RUN", PFEIFE_RUN, 1);
    std::filesystem::copy_file(configs() / "models/tiny_gpt.pt2", folder_ / "tiny_gpt.pt2");
    write("study.yaml",
          "version: 1\nmodel: tiny_gpt.pt2\nprofile: measure\ncluster: measure\n"
          "cases: {plan: [{families: 1f1b, stages_per_rank: 1}, {families: zbv, stages_per_rank: "
          "2}], microbatches: 3, "
          "devices: 2}\n"
          "engines: [estimate, simulate, measure]\nmeasurement: {steps: 5}\n");
  }
  /// Exit code.
  int study(const std::string& arguments) const {
    return std::system(
        ("cd '" + folder_.string() + "' && '" PFEIFE_STUDY "' " + arguments + " > stdout 2> stderr")
            .c_str());
  }
  /// The text of the file in out/measured whose name begins so and ends with ".yaml".
  std::string profile(const std::string& begin) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out/measured"))
      if (const std::string name = entry.path().filename().string();
          name.starts_with(begin) && name.ends_with(".yaml"))
        return read(std::filesystem::path("out/measured") / name);
    return "";
  }
};

// 2 rounds of 5 steps, 2 of which warm up, of each of the two plans.
TEST_F(Study, EveryRoundAddsItsShareToProfilesAndPoints) {
  ASSERT_EQ(study("study.yaml out 2"), 0) << read("stderr");
  const std::string table = read("stdout");
  EXPECT_THAT(table, HasSubstr("2 points, 12 steps measured"));
  EXPECT_THAT(table, ContainsRegex("all shares +[0-9.]+ +[-+][0-9.]+"));
  EXPECT_THAT(table, ContainsRegex("first share +[0-9.]+ +[-+][0-9.]+"));
  EXPECT_THAT(profile("first-"), HasSubstr("medians of 3 steps"));
  EXPECT_THAT(profile("tiny_gpt"), HasSubstr("medians of 6 steps"));
  // Shares of an earlier study say nothing of these minutes.
  ASSERT_EQ(study("study.yaml out 1"), 0) << read("stderr");
  EXPECT_THAT(profile("tiny_gpt"), HasSubstr("medians of 3 steps"));
}

}  // namespace
}  // namespace pfeife
