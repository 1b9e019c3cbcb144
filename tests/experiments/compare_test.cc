// pfeife-exp compare, on traces that torch wrote.
#include <gmock/gmock.h>

#include <regex>

#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class Compare : public ProgramTest {
 protected:
  Compare() {
    std::filesystem::copy_file(configs() / "clusters/laptop.yaml", folder_ / "laptop.yaml");
    std::string table =
        "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
        "temporary_bytes\n";
    for (int layer = 0; layer < 4; ++layer)
      table += "block" + std::to_string(layer) + ",0.5,1,1000,1000,1000,0,0\n";
    write("blocks.csv", table);
    write("run.yaml",
          "version: 1\nmodel: blocks.csv\ncluster: laptop.yaml\n"
          "cases: {devices: 2, microbatches: 4}\nbaselines: []\n"
          "plan: {schedule: " +
              (traces_ / "schedule.csv").string() + ", cuts: [0, 1, 2]}\n");
  }

  std::filesystem::path traces_ =
      std::filesystem::path(PFEIFE_SOURCE_DIR) / "tests/data/torch_traces/zbv";
};

TEST_F(Compare, SaysWhatTheRunLostAndTheLossesAddUp) {
  ASSERT_EQ(run({"run.yaml"}).code, 0);
  const std::string plan = "results/run/devices=2,microbatches=4/planned";
  const Outcome outcome = run({"compare", plan, traces_.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("longer than simulated ("));
  EXPECT_THAT(outcome.out, HasSubstr("errors, predicted / measured - 1"));
  EXPECT_THAT(outcome.out, HasSubstr("rank1.json.gz: "));
  const std::regex row(
      R"(\n(\w+ \w+|gaps between operators|measured - simulated) +(-?\d+) +(-?\d+) +(-?\d+))");
  std::int64_t sum = 0, total = 0;
  for (std::sregex_iterator at(outcome.out.begin(), outcome.out.end(), row), end; at != end; ++at) {
    const std::int64_t all = std::stoll((*at)[4]);
    EXPECT_EQ(std::stoll((*at)[2]) + std::stoll((*at)[3]), all);
    (((*at)[1] == "measured - simulated") ? total : sum) += all;
  }
  EXPECT_GT(total, 0);
  EXPECT_EQ(sum, total);
}

// The page of one plan: its prediction, and beside it the run as the traces have it. The step of
// this run lasts as long as `compare` says.
TEST_F(Compare, ViewShowsAPlanAndItsRunOnThePageOfReports) {
  ASSERT_EQ(run({"run.yaml"}).code, 0);
  const std::string plan = "results/run/devices=2,microbatches=4/planned";
  const Outcome alone = run({"view", plan + "/plan.yaml"});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_EQ(alone.out, plan + "/view.html\n");
  const std::string page = read(plan + "/view.html");
  EXPECT_THAT(page, HasSubstr(R"("source":"simulated")"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr(R"("source":"measured")")));

  const Outcome outcome = run({"view", plan, traces_.string(), "--out", "run.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "run.html\n");
  const std::string beside = read("run.html");
  EXPECT_THAT(beside, HasSubstr(R"("source":"simulated")"));
  EXPECT_THAT(beside, HasSubstr(R"("source":"measured")"));
  const std::string compared = run({"compare", plan, traces_.string()}).out;
  std::smatch measured, said;
  ASSERT_TRUE(std::regex_search(beside, measured, std::regex(R"("measured":(\d+))")));
  ASSERT_TRUE(std::regex_search(compared, said, std::regex(R"(The step took ([\d.]+) ms)")))
      << compared;
  EXPECT_NEAR(std::stod(measured[1]) / 1e6, std::stod(said[1]), 0.05);

  EXPECT_EQ(run({"view"}).code, 2);
  EXPECT_THAT(run({"view", "nowhere"}).err, HasSubstr("nowhere: is no plan; give plan.yaml"));
}

// In a config: the report that the verb gives, on the screen and beside the plan, and a measured
// time.
TEST_F(Compare, TracesInAConfigGiveTheSameReport) {
  write("traced.yaml", read("run.yaml") + "measurement: {traces: " + traces_.string() + "}\n");
  const Outcome outcome = run({"traced.yaml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::filesystem::path plan = "results/traced/devices=2,microbatches=4/planned";
  const std::string text = read(plan / "comparison.txt");
  EXPECT_EQ(run({"compare", plan.string(), traces_.string()}).out, text);
  EXPECT_THAT(outcome.out, HasSubstr(text));
  EXPECT_GT(std::stod(result("results/traced", "planned", "measure_ms")), 0);
  EXPECT_THAT(run({"traced.yaml"}).out, HasSubstr(text)) << "also when nothing is done again";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

// The plan alone was measured. Ratio, rates, bubble and drawings are of simulations, as all plans
// have one; the measured step stands beside.
TEST_F(Compare, AMeasuredPlanIsComparedWithItsBaselinesByWhatBothAreSimulatedAs) {
  std::string config = read("run.yaml") + "measurement: {traces: " + traces_.string() + "}\n";
  config.replace(config.find("baselines: []"), 13, "baselines: [1f1b]");
  write("mixed.yaml", config);
  const Outcome outcome = run({"mixed.yaml"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto figure = [&](const char* plan, const char* column) {
    return std::stod(result("results/mixed", plan, column));
  };
  const double simulated = figure("planned", "simulate_ms"), other = figure("1f1b", "simulate_ms"),
               measured = figure("planned", "measure_ms");
  ASSERT_GT(measured, 1.5 * other) << "else a ratio of two engines would show nothing";
  EXPECT_THAT(outcome.out, HasSubstr("times simulated"));
  char text[40];
  std::snprintf(text, sizeof text, "%.2fx", other / simulated);
  EXPECT_THAT(outcome.out, HasSubstr(text));
  std::snprintf(text, sizeof text, "%.1f %%", 100 * (simulated / measured - 1));
  EXPECT_THAT(outcome.out, HasSubstr(text)) << "the error of the prediction";
  for (const char* plan : {"planned", "1f1b"}) {
    EXPECT_NEAR(figure(plan, "samples_per_s") * figure(plan, "simulate_ms"),
                4000 * figure(plan, "microbatch_size"), 1);
    EXPECT_GT(figure(plan, "bubble_fraction"), 0);
  }
  for (const char* drawing : {"plans.svg", "rank_times.svg"}) {
    const std::string svg = read("results/mixed/devices=2,microbatches=4/" + std::string(drawing));
    EXPECT_EQ(count(svg, ">simulated "), 2U) << drawing;
    EXPECT_EQ(count(svg, ">measured "), 1U) << drawing;
  }
}

TEST_F(Compare, TracesInAConfigAreOfOneRunThatHasBeen) {
  const auto refusal = [&](const std::string& more) {
    write("refused.yaml", read("run.yaml") + more);
    const Outcome outcome = run({"refused.yaml"});
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  const std::string traces = "measurement: {traces: " + traces_.string() + "}\n";
  EXPECT_THAT(refusal("measurement: {traces: nowhere}\n"), HasSubstr("there is no file"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(refusal("measurement: {traces: empty}\n"), HasSubstr("has no files that end in"));
  std::string several = read("run.yaml") + traces;
  several.replace(several.find("microbatches: 4"), 15,
                  "microbatches: 4, training.precision: [fp32, tf32]");
  write("several.yaml", several);
  EXPECT_THAT(run({"several.yaml"}).err,
              HasSubstr("are of one plan, and the experiment has 2 cases"));
  // What cannot be compared is said with the results kept.
  write("other.yaml",
        read("run.yaml") + "measurement: {traces: " + (traces_ / "rank0.json.gz").string() + "}\n");
  const Outcome other = run({"other.yaml"});
  EXPECT_EQ(other.code, 4);
  EXPECT_THAT(other.err, HasSubstr("plan planned was not measured: no trace is of rank 1"));
  EXPECT_GT(std::stod(result("results/other", "planned", "simulate_ms")), 0);
}

TEST_F(Compare, RefusesWhatCannotBeCompared) {
  EXPECT_EQ(run({"compare"}).code, 2);
  const Outcome none = run({"compare", "nowhere", traces_.string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("nowhere: there is no such plan"));
  ASSERT_EQ(run({"run.yaml"}).code, 0);
  const Outcome half = run({"compare", "results/run/devices=2,microbatches=4/planned",
                            (traces_ / "rank0.json.gz").string()});
  EXPECT_EQ(half.code, 2);
  EXPECT_THAT(half.err, HasSubstr("no trace is of rank 1; the plan has 2 ranks"));
}

}  // namespace
}  // namespace pfeife
