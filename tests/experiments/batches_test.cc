// `pfeife-exp batches`: one plan for many batches, beside plans that are saved and priced one by
// one.
#include "experiments/sweep/batches.h"

#include <gmock/gmock.h>

#include "experiments/pfeife.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

// Four batches of four microbatches for the tiny model, whose sequences have 12 tokens.
constexpr const char* kBatches =
    "batch,microbatch,length\n"
    "0,0,12\n0,1,6\n0,1,6\n0,2,3\n0,3,12\n"
    "1,0,2\n1,1,4\n1,1,4\n1,2,12\n1,3,1\n"
    "2,0,12\n2,1,12\n2,2,12\n2,3,11\n"
    "3,0,1\n3,1,1\n3,2,12\n3,2,12\n3,3,1\n";

class Batches : public ProgramTest {
 protected:
  Batches() {
    write("step.yaml",
          "version: 1\nmodel: " + (configs() / "models/tiny_gpt.pt2").string() +
              "\ncluster: " + (configs() / "clusters/laptop.yaml").string() +
              "\ncases: {devices: 2}\n"
              "plan: {families: [1f1b, gpipe], stages_per_rank: [1], iterations: 20}\n");
    write("batches.csv", kBatches);
  }
  Request request() const { return request_of(read("step.yaml"), folder_ / "step.yaml").request; }
  /// The step of a saved plan with another batch, through plan.file.
  Nanoseconds replayed(const std::string& folder, const DocumentLengths& batch) const {
    Request request = this->request();
    request.devices = 0, request.microbatches = 0;
    request.plan = {.file = folder_ / folder / "plan.yaml"};
    request.training.lengths = batch;
    request.baselines.clear();
    request.simulate = false;
    return plan(request).best().plan.estimate;
  }
};

TEST_F(Batches, TheBestPlanIsTheOneWithTheSmallestMeanOfAllThatWerePlanned) {
  const std::vector<DocumentLengths> batches = read_batches(folder_ / "batches.csv");
  ASSERT_EQ(batches.size(), 4U);
  EXPECT_EQ(batches[3], (DocumentLengths{{1}, {1}, {12, 12}, {1}}));
  const BatchesAnswer answer = plan_batches({.config = folder_ / "step.yaml",
                                             .lengths = folder_ / "batches.csv",
                                             .out = folder_ / "best"},
                                            2);
  // Every batch planned by itself, its plan saved, and replayed for every batch.
  std::vector<Nanoseconds> means, least(4, Nanoseconds::max());
  for (std::size_t b = 0; b < 4; ++b) {
    Request asked = request();
    asked.training.lengths = batches[b], asked.microbatches = 4;
    asked.baselines.clear(), asked.simulate = false;
    const Planned planned = plan(asked);
    const std::string folder = "plan" + std::to_string(b);
    save(planned, folder_ / folder);
    Nanoseconds sum{0};
    for (std::size_t other = 0; other < 4; ++other) {
      const Nanoseconds step = replayed(folder, batches[other]);
      least[other] = std::min(least[other], step), sum += step;
      if (other == b) {
        EXPECT_EQ(step, planned.best().plan.estimate);
      }
    }
    means.push_back(sum / 4);
  }
  Nanoseconds sum{0};
  for (std::size_t b = 0; b < 4; ++b) {
    EXPECT_EQ(answer.best.steps[b], replayed("best", batches[b])) << b;
    EXPECT_LE(answer.replanned.steps[b], least[b]);
    sum += answer.best.steps[b];
  }
  EXPECT_EQ(answer.best.mean(), sum / 4);
  EXPECT_EQ(answer.best.p95(), std::ranges::max(answer.best.steps));  // of four the largest
  for (const Nanoseconds mean : means) EXPECT_LE(answer.best.mean(), mean);
  EXPECT_LE(answer.replanned.mean(), answer.best.mean());
  EXPECT_GE(answer.plans, answer.fit);
}

TEST_F(Batches, ThatAreAlikeAreWorthNoPlanning) {
  write("batches.csv", "batch,microbatch,length\n0,0,12\n0,1,3\n0,2,12\n1,0,12\n1,1,3\n1,2,12\n");
  const Outcome outcome = run({"batches", "step.yaml", "--lengths", "batches.csv", "--by", "p95"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("steps of 2 batches, estimated"));
  EXPECT_THAT(outcome.out, HasSubstr("planning each batch anew is worth 0.00 %"));
  EXPECT_EQ(run({"batches", "step.yaml", "--lengths", "batches.csv", "--order"}).code, 0);
}

TEST_F(Batches, MistakesHaveTheirPlace) {
  const auto refused = [&](const std::string& text) {
    write("bad.csv", text);
    const Outcome outcome = run({"batches", "step.yaml", "--lengths", "bad.csv"});
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  const std::string head = "batch,microbatch,length\n";
  EXPECT_THAT(refused(head), HasSubstr("has no documents"));
  EXPECT_THAT(refused(head + "0,0,12\n2,0,12\n"), HasSubstr("bad.csv:3"));
  EXPECT_THAT(refused(head + "0,0,12\n0,2,12\n"),
              HasSubstr("microbatches of a batch are numbered"));
  EXPECT_THAT(refused(head + "0,0,0\n"), HasSubstr("at least 1"));
  EXPECT_THAT(refused(head + "0,0,1\n1,0,1\n1,1,1\n"),
              HasSubstr("batch 1 has 2 microbatches, and batch 0 has 1"));
  EXPECT_THAT(refused(head + "0,0,13\n"), HasSubstr("a document of 13 tokens"));
  EXPECT_THAT(run({"batches", "step.yaml"}).err, HasSubstr("which batches"));
  EXPECT_THAT(run({"batches", "step.yaml", "--lengths", "batches.csv", "--by", "max"}).err,
              HasSubstr("mean or p95"));
}

}  // namespace
}  // namespace pfeife
