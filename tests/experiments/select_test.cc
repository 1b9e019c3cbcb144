// Plans under jitter, what each way of choosing picks, and the tables for documents.
#include <gmock/gmock.h>

#include "experiments/show/table_files.h"
#include "planner/io/results/results.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class Selection : public ProgramTest {
 protected:
  CaseRecord record(const std::string& microbatches,
                    const std::vector<std::string>& settings) const {
    std::vector<std::string> arguments{
        (configs() / "two_stage.yaml").string(), "--out", "out", "--force", "--set",
        "cases.microbatches=" + microbatches};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string name = "out/devices=2,microbatches=" + microbatches + "/case.json";
    const auto found = case_from_json(read(name));
    EXPECT_TRUE(found) << name;
    return found.value_or(CaseRecord{});
  }
};

TEST_F(Selection, WithoutVariationPercentilesAreTheEstimate) {
  const ResultRow row = record("2", {"simulation.jitter={cv: 0}"}).plans.front().row;
  EXPECT_EQ(row.estimate_p5, row.estimate);
  EXPECT_EQ(row.estimate_median, row.estimate);
  EXPECT_EQ(row.estimate_p95, row.estimate);
}

TEST_F(Selection, EveryWayPicksThePlanWithTheLeastOfItsFigure) {
  const std::string jitter = "simulation.jitter={cv: 0.3, repetitions: 50}";
  for (const std::string by : {"estimate", "simulate", "p95"}) {
    const CaseRecord found = record("8", {jitter, "plan.families=all", "select_by=" + by});
    ASSERT_EQ(found.choices.size(), 3u);
    const auto& [estimate, simulate, p95] =
        std::tie(found.choices[0], found.choices[1], found.choices[2]);
    for (const PlanChoice& choice : found.choices) {
      EXPECT_EQ(choice.used, choice.by == by);
      EXPECT_LE(estimate.estimate, choice.estimate);
      EXPECT_LE(simulate.simulate, choice.simulate);
      EXPECT_LE(p95.p95, choice.p95);
      if (choice.used) {
        EXPECT_EQ(choice.estimate, found.plans.front().row.estimate);
        EXPECT_EQ(choice.p95, found.plans.front().row.simulate_p95);
      }
    }
  }
}

TEST_F(Selection, ReferenceModeAndGivenPlansAreMarkedWhereverThePlanIsShown) {
  std::string layers =
      "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
      "bytes,weight_saved_bytes,temporary_bytes\n";
  for (int l = 0; l < 8; ++l)
    layers += std::string(1, static_cast<char>('a' + l)) + ",1,1,1,9,9,9,0,0\n";
  write("layers.csv", layers);
  write("config.yaml", "version: 1\nmodel: layers.csv\ncluster: " +
                           (configs() / "clusters" / "laptop.yaml").string() +
                           "\ncases: {devices: 2, microbatches: 2}\nbaselines: []\n");
  const std::string config = "config.yaml";
  const auto check = [&](const std::string& setting, const std::string& mark,
                         const std::string& by) {
    const Outcome outcome = run({config, "--out", "marked", "--force", "--set", setting});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("search=" + mark));
    EXPECT_THAT(read("marked/results.md"), HasSubstr("search=" + mark));
    EXPECT_THAT(read("marked/results.tex"), HasSubstr("search=" + mark));
    EXPECT_THAT(result("marked", "planned", "knobs"), HasSubstr("search=" + mark));
    EXPECT_THAT(read("marked/devices=2,microbatches=2/planned/plan.yaml"),
                HasSubstr("by: \"" + by + "\""));
  };
  check("plan={search: reference, stages_per_rank: 1}", "reference", "reference mode");
  std::filesystem::copy(folder_ / "marked/devices=2,microbatches=2/planned", folder_ / "kept");
  check("plan={file: \"" + (folder_ / "kept/plan.yaml").string() + "\"}", "none", "given plan");
  check("plan={schedule: \"" + (folder_ / "kept/schedule.csv").string() + "\", cuts: [3]}", "none",
        "given schedule and cuts");
}

TEST_F(Selection, WithoutSimulationP95IsTheEstimated) {
  const CaseRecord found = record(
      "2", {"simulation.jitter={cv: 0.3, repetitions: 50}", "engines=estimate", "select_by=p95"});
  ASSERT_EQ(found.choices.size(), 2u);
  EXPECT_EQ(found.choices[1].p95, found.plans.front().row.estimate_p95);
}

/// A case whose texts have everything that Markdown and LaTeX give a meaning to.
std::vector<CaseRecord> hostile() {
  CaseRecord record;
  record.name = "a|b_c&d=50%";
  PlanRecord plan;
  plan.row.plan = "x^2 ~ {y} #1 $z \\w <v>";
  plan.row.family = "zb_h1";
  plan.row.estimate = Nanoseconds{1'234'567};
  plan.row.peak_memory = Bytes{3 << 20};
  plan.row.memory_limit = Bytes{4 << 20};
  plan.row.feasible = true;
  record.plans = {plan};
  return {record};
}

TEST(TableFiles, MarkdownHasARowAPlanAndOnlyItsOwnBars) {
  EXPECT_THAT(markdown_table(hostile()),
              EndsWith("| a\\|b\\_c&amp;d 50% | x^2 \\~ {y} \\#1 \\$z \\\\w &lt;v&gt; | "
                       "zb\\_h1 | 1.2346 | - | - | 3.0 | 4.0 |\n"));
}

TEST(TableFiles, AColumnSaysWhatDoesNotFitIfAnythingDoesNot) {
  std::vector<CaseRecord> cases = hostile();
  PlanRecord large = cases[0].plans[0];
  large.row.feasible = false;
  large.row.peak_memory = Bytes{std::int64_t{5} << 30};
  cases[0].plans.push_back(large);
  // In MiB: in GiB the first would be 0.0.
  EXPECT_THAT(markdown_table(cases), HasSubstr("peak memory, MiB | limit, MiB | fits |\n"));
  EXPECT_THAT(markdown_table(cases), HasSubstr(" | 3.0 | 4.0 | yes |\n"));
  EXPECT_THAT(markdown_table(cases), EndsWith(" | 5120.0 | 4.0 | no |\n"));
  EXPECT_THAT(latex_table(cases), HasSubstr(" & 5120.0 & 4.0 & no \\\\\n"));
}

TEST(TableFiles, LatexEscapesWhatHasAMeaning) {
  const std::string table = latex_table(hostile());
  EXPECT_THAT(table, HasSubstr("\\begin{tabular}{lllrrrrr}"));
  EXPECT_THAT(table, HasSubstr("a|b\\_c\\&d 50\\% & x\\textasciicircum{}2 \\textasciitilde{} "
                               "\\{y\\} \\#1 \\$z \\textbackslash{}w \\textless{}v"
                               "\\textgreater{} & zb\\_h1 & 1.2346 & - & - & 3.0 & 4.0 \\\\\n"));
}

}  // namespace
}  // namespace pfeife
