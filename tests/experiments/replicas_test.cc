// `parallel` of a model that is no architecture: its pipeline on several replicas.
#include <gmock/gmock.h>

#include "planner/schedule_tool/certify.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class ReplicasOfAPipeline : public ProgramTest {
 protected:
  ReplicasOfAPipeline() {
    for (const char* name : {"models/tiny_gpt.pt2", "clusters/a100_sxm4_40gb_x8.yaml"}) {
      std::filesystem::create_directories((folder_ / name).parent_path());
      std::filesystem::copy_file(configs() / name, folder_ / name);
    }
  }
  /// A run of two ranks and four microbatches with these keys.
  Outcome with(const std::string& keys, const std::string& out,
               const std::string& cases = "cases: {devices: 2, microbatches: 4}\n") {
    write("r.yaml",
          "version: 1\nmodel: models/tiny_gpt.pt2\ncluster: clusters/a100_sxm4_40gb_x8.yaml\n"
          "baselines: [1f1b]\n" +
              cases + keys);
    return run({"r.yaml", "--out", out, "--quiet"});
  }
  static constexpr const char* kQuick = "plan: {families: [1f1b], iterations: 1}\n";
  double figure(const std::string& out, const std::string& column) {
    return std::stod(result(out, "planned", column));
  }
};

TEST_F(ReplicasOfAPipeline, TakeAsManySamplesMoreAndReduceTheirGradients) {
  ASSERT_EQ(with(kQuick, "one").code, 0);
  ASSERT_EQ(with(std::string("parallel: {dp: 4}\n") + kQuick, "beside").code, 0);
  ASSERT_EQ(
      with(std::string("parallel: {dp: 4, overlap_reductions: false}\n") + kQuick, "behind").code,
      0);
  ASSERT_EQ(with(std::string("parallel: {dp: 4, zero: 1}\n") + kQuick, "zero").code, 0);
  EXPECT_EQ(figure("beside", "microbatch_size"), 4 * figure("one", "microbatch_size"));
  EXPECT_GT(figure("beside", "estimate_ms"), figure("one", "estimate_ms"));
  EXPECT_GT(figure("behind", "estimate_ms"), figure("beside", "estimate_ms"));
  EXPECT_LE(figure("beside", "lower_bound_ms"), figure("beside", "estimate_ms"));
  EXPECT_NEAR(figure("behind", "samples_per_s"),
              4 * figure("behind", "microbatch_size") / figure("behind", "simulate_ms") * 1000,
              1e-3 * figure("behind", "samples_per_s"));
  EXPECT_LT(figure("zero", "optimizer_bytes_of_rank"), figure("one", "optimizer_bytes_of_rank"));
}

// plan.yaml says how many there are: the judge computes the same costs, and an experiment of the
// plan takes as long.
TEST_F(ReplicasOfAPipeline, ArePartOfThePlan) {
  ASSERT_EQ(with(std::string("parallel: {dp: 2, zero: 1}\n") + kQuick, "first").code, 0);
  const std::string plan = "first/devices=2,microbatches=4/planned/plan.yaml";
  EXPECT_THAT(read(plan), HasSubstr("zero: 1"));
  const tool::Judged said = tool::certify_files(folder_ / plan, 1, [](const std::string&) {});
  EXPECT_TRUE(said.proven) << said.text;
  ASSERT_EQ(
      with("parallel: {dp: 2, zero: 1}\nplan: {file: \"" + (folder_ / plan).string() + "\"}\n",
           "again", "")
          .code,
      0);
  EXPECT_EQ(result("again", "planned", "estimate_ms"), result("first", "planned", "estimate_ms"));
}

TEST_F(ReplicasOfAPipeline, MistakesSayWhereTheyAreAndWhatWouldDo) {
  const auto message = [&](const std::string& keys,
                           const std::string& cases = "cases: {devices: 2, microbatches: 4}\n") {
    const Outcome outcome = with(keys, "out", cases);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_MESSAGE(message("parallel: {dp: 2, tp: 2}\n"));
  EXPECT_MESSAGE(message("parallel: {zero: 2}\n"));
  EXPECT_MESSAGE(message("parallel: {dp: 2, zero: 4}\n"));
  EXPECT_MESSAGE(message("parallel: {dp: 16}\n"));
  EXPECT_MESSAGE(message("parallel: {dp: 8}\n"));
  EXPECT_MESSAGE(
      message("parallel: {dp: 4}\ntraining: {global_batch: 30}\n", "cases: {devices: 2}\n"));
  EXPECT_MESSAGE(message("parallel: {dp: 2}\nengines: [measure]\n"));
}

}  // namespace
}  // namespace pfeife
