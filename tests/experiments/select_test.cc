// Plans under jitter, what each way of choosing picks, and the tables for documents.
#include <gmock/gmock.h>

#include "experiments/show/table_files.h"
#include "planner/io/results/results.h"
#include "tests/experiments/program.h"
#include "tests/support/mixed_engines.h"

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
    const CaseRecord found =
        record("8", {jitter, "plan.families=all", "plan.as_fast=0", "select_by=" + by});
    ASSERT_EQ(found.choices.size(), 3u);
    const auto& [estimate, simulate, p95] =
        std::tie(found.choices[0], found.choices[1], found.choices[2]);
    for (const PlanChoice& choice : found.choices) {
      EXPECT_EQ(choice.used, to_string(choice.by) == by);
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
  check("plan={file: \"" + (folder_ / "kept").string() + "\"}", "none", "given plan");
  check("plan={schedule: \"" + (folder_ / "kept").string() + "\", cuts: [3]}", "none",
        "given schedule and cuts");
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
  PlanRecord plan;
  plan.row.devices = 4;
  plan.row.microbatches = 8;
  plan.row.family = "a|b_c&d=50% x^2 ~ {y} #1 $z \\w <v>";
  plan.row.estimate = Nanoseconds{1'234'567};
  plan.row.peak_memory = Bytes{3 << 20};
  plan.row.feasible = true;
  record.plans = {plan};
  return {record};
}

TEST(TableFiles, MarkdownHasARowAPlanAndOnlyItsOwnBars) {
  EXPECT_EQ(markdown_table(hostile()),
            "| D | N | plan | step ms | peak MiB |\n|---|---|---|---:|---:|\n"
            "| 4 | 8 | a\\|b\\_c&amp;d=50% x^2 \\~ {y} \\#1 \\$z \\\\w &lt;v&gt; | 1.235 | 3.0 |\n"
            "\ntimes estimated\n");
}

TEST(TableFiles, LatexEscapesWhatHasAMeaning) {
  EXPECT_THAT(latex_table(hostile()),
              HasSubstr("4 & 8 & \\textbf{a|b\\_c\\&d=50\\% x\\textasciicircum{}2 "
                        "\\textasciitilde{} \\{y\\} \\#1 \\$z \\textbackslash{}w "
                        "\\textless{}v\\textgreater{}} & \\textbf{1.235} & 3.0 \\\\\n"));
}

// Bold is the plan, which is simulated fastest of those that fit, not a baseline that was simulated
// in less time than the plan was measured.
TEST(TableFiles, TheBestIsTheFastestOfOneEngine) {
  const auto bold = [](const CaseRecord& record) {
    const std::string table = latex_table({record});
    const std::size_t at = table.find("\\textbf{") + 8;
    return table.substr(at, table.find('}', at) - at);
  };
  EXPECT_EQ(bold(mixed_case()), "planned");
  EXPECT_EQ(bold(measured_case()), "1f1b");
  EXPECT_THAT(markdown_table({mixed_case()}),
              HasSubstr("| planned | 250.0 | 1000.0 | -75.0 % | 1.20x | 4.0 |\n"
                        "| 2 | 6 | interleaved\\_1f1b | 276.0 |  |  | 1.09x | 4.0 |"));
}

// Two plans of which the faster lacks 1 GiB: the other is the best. Its rows: 5 columns.
TEST(TableFiles, LatexGroupsThePlansOfACaseAndMarksTheBestAndWhatDoesNotFit) {
  CaseRecord record;
  for (const char* family : {"zb_h1", "1f1b"}) {
    PlanRecord plan;
    plan.row.plan = plan.row.family = family;
    plan.row.devices = 2, plan.row.microbatches = 4;
    plan.row.estimate = Nanoseconds{record.plans.empty() ? 20'000'000 : 10'000'000};
    plan.need.allocated = {Bytes{std::int64_t{record.plans.empty() ? 3 : 5} << 30}};
    plan.need.limit = {Bytes{std::int64_t{4} << 30}};
    plan.row.peak_memory = plan.need.allocated[0];
    plan.row.feasible = record.plans.empty();
    record.plans.push_back(plan);
  }
  const std::string table = latex_table({record}, {"step", "peak"});
  EXPECT_EQ(table,
            "% \\usepackage{booktabs,multirow}; about 170 pt wide in 10 pt type: fits a column "
            "(table)\n% times estimated; bold: the fastest plan that fits\n"
            "\\begin{tabular}{lllrr}\n\\toprule\nD & N & plan & step ms & peak GiB \\\\\n"
            "\\midrule\n\\multirow{2}{*}{2} & \\multirow{2}{*}{4} & \\textbf{zb\\_h1} & "
            "\\textbf{20.00} & 3.0 \\\\\n &  & 1f1b & 10.00 & +1.0\\rlap{$^\\dagger$} "
            "\\\\\n\\bottomrule\n"
            "\\multicolumn{5}{l}{\\footnotesize $\\dagger$ GiB over the limit, does not fit}\\\\\n"
            "\\end{tabular}\n");
}

}  // namespace
}  // namespace pfeife
