// `pfeife-exp pack`, as a user types it.
#include "experiments/sweep/packing.h"

#include <gmock/gmock.h>

#include <fstream>

#include "experiments/pfeife.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class PackedBatch : public ProgramTest {
 protected:
  /// 1F1B of the tiny model (12 tokens a sequence) on two devices.
  void write_config(const std::string& lengths) {
    write("batch.yaml",
          "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() + "\ncluster: " +
              (configs() / "clusters/laptop.yaml").string() + "\ntraining: {lengths: " + lengths +
              "}\ncases: {devices: 2}\n"
              "plan: {families: [1f1b], stages_per_rank: [1], iterations: 20, as_fast: 0}\n");
  }
};

constexpr const char* kDocuments = "[[9, 2, 7, 5, 3, 12, 4, 4, 6, 1]]";

// First-fit with 12 tokens: 9 2 1 | 7 5 | 3 4 4 | 12 | 6.
TEST_F(PackedBatch, TheFileThatIsWrittenHasTheStepThatIsPromised) {
  write_config(kDocuments);
  const PackingQuestion question{.config = folder_ / "batch.yaml", .limit = 12};
  const Packing packing = pack_documents(question, 2);
  ASSERT_EQ(packing.steps.size(), 3U);
  EXPECT_EQ(packing.steps[0].grouping, (DocumentLengths{{9, 2, 1}, {7, 5}, {3, 4, 4}, {12}, {6}}));
  EXPECT_LE(packing.steps[1].step, packing.steps[0].step);
  EXPECT_LE(packing.steps[2].step, packing.steps[1].step);
  EXPECT_LT(packing.steps[2].step, packing.steps[0].step);
  const Outcome outcome = run({"pack", "batch.yaml", "--limit", "12", "--out", "packed.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("first-fit, order searched"));
  EXPECT_THAT(outcome.out, HasSubstr("packed.csv"));
  EXPECT_THAT(outcome.out, HasSubstr("groupings tried on the rows of the plans: "));
  EXPECT_EQ(read("packed.csv"), lengths_csv(packing.steps.back().grouping));
  write_config("packed.csv");
  Request asked = request_of(read("batch.yaml"), folder_ / "batch.yaml").request;
  asked.simulate = false, asked.baselines.clear();
  EXPECT_EQ(asked.training.lengths, packing.steps.back().grouping);
  EXPECT_EQ(plan(asked).best().plan.estimate, packing.steps.back().step);
}

TEST_F(PackedBatch, MistakesSayWhatToDo) {
  write_config(kDocuments);
  const auto refused = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"pack", "batch.yaml"};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(refused({}), HasSubstr("how many tokens a microbatch"));
  EXPECT_THAT(refused({"--limit", "0"}), HasSubstr("from 1 to"));
  const std::string longer = refused({"--limit", "11"});
  EXPECT_THAT(longer, HasSubstr("batch.yaml:4"));
  EXPECT_THAT(longer, HasSubstr("a document has 12 tokens, and --limit allows 11"));
  EXPECT_THAT(refused({"--limit", "12", "--microbatches", "4"}), HasSubstr("first-fit makes 5"));
  EXPECT_THAT(refused({"--limit", "12", "--set", "cases.devices=[1, 2]"}), HasSubstr("2 cases"));
  write("none.yaml", "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
                         "\ncluster: " + (configs() / "clusters/laptop.yaml").string() + "\n");
  EXPECT_THAT(run({"pack", "none.yaml", "--limit", "12"}).err,
              HasSubstr("pack needs the documents"));
}

}  // namespace
}  // namespace pfeife
