// What a config may leave open besides cuts and schedule: microbatch size, devices of the ranks.
#include <gmock/gmock.h>

#include "planner/io/results/results.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;

class Choices : public ProgramTest {
 protected:
  Choices() {
    for (const char* name : {"laptop", "3090_x8"})
      std::filesystem::copy_file(configs() / "clusters" / (std::string(name) + ".yaml"),
                                 folder_ / (std::string(name) + ".yaml"));
  }
};

TEST_F(Choices, TheBestMicrobatchSizeOfAGlobalBatchIsFound) {
  std::filesystem::copy_file(configs() / "models" / "tiny_gpt.pt2", folder_ / "tiny_gpt.pt2");
  write("open.yaml",
        "version: 1\nmodel: tiny_gpt.pt2\ncluster: laptop.yaml\ntraining: {global_batch: 12}\n"
        "plan: {families: certified, stages_per_rank: [1, 2]}\nbaselines: [1f1b]\n");
  const Outcome outcome = run({"open.yaml", "--out", "open", "--verbose"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("  chosen: " + result("open", "planned", "microbatches") + " microbatch"));
  double best = 1e9;
  std::string best_size;
  for (const char* size : {"1", "2", "3", "4", "6", "12"}) {
    const std::string out = std::string("size") + size;
    EXPECT_EQ(
        run({"open.yaml", "--out", out, "--set", std::string("training.microbatch_size=") + size})
            .code,
        0);
    const double time = std::stod(result(out, "planned", "estimate_ms"));
    if (time < best) best = time, best_size = size;
    EXPECT_LE(std::stod(result("open", "planned", "lower_bound_ms")), time);
  }
  EXPECT_EQ(result("open", "planned", "microbatch_size"), best_size);
  EXPECT_EQ(std::stod(result("open", "planned", "estimate_ms")), best);
  EXPECT_EQ(result("open", "1f1b", "microbatch_size"), best_size);
  EXPECT_THAT(read("open/devices=2,global_batch=12/case.json"),
              HasSubstr("the other microbatch sizes of the global batch: 1, 2, 3, 4, 6, 12"));
  EXPECT_THAT(read("open/devices=2,global_batch=12/planned/plan.yaml"),
              HasSubstr("microbatch_size: " + best_size));
  // The course of the search ends at what is said in the end.
  const auto record = case_from_json(read("open/devices=2,global_batch=12/case.json"));
  ASSERT_TRUE(record && !record->history.empty());
  for (const SearchStep& step : record->history)
    if (step.bound) {
      EXPECT_LE(step.bound, record->plans.front().row.lower_bound);
    }
  // The plan is taken as it is by a config that names it.
  write("again.yaml",
        "version: 1\nmodel: tiny_gpt.pt2\ncluster: laptop.yaml\nbaselines: []\n"
        "training: {microbatch_size: " +
            best_size +
            "}\n"
            "plan: {file: \"open/devices=2,global_batch=12/planned/plan.yaml\"}\n");
  const Outcome again = run({"again.yaml", "--out", "again"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(result("again", "planned", "estimate_ms"), result("open", "planned", "estimate_ms"));
}

TEST_F(Choices, TheOrderOfTheLayersIsPartOfThePlan) {
  std::filesystem::copy_file(configs() / "models" / "tiny_convnet.pt2",
                             folder_ / "tiny_convnet.pt2");
  const std::string head =
      "version: 1\nmodel: tiny_convnet.pt2\ncluster: laptop.yaml\nbaselines: []\n";
  write("open.yaml", head + "plan: {families: [1f1b, zb_h1], order: search}\n");
  const Outcome outcome = run({"open.yaml", "--out", "open", "--verbose"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  double best = 1e9;
  for (const char* order : {"captured", "depth_first", "least_live"}) {
    EXPECT_EQ(run({"open.yaml", "--out", order, "--set", std::string("plan.order=") + order,
                   "--set", "plan.cuts_at=layers"})
                  .code,
              0);
    best = std::min(best, std::stod(result(order, "planned", "simulate_ms")));
    const std::string folder = std::string(order) + "/devices=2,microbatches=8/planned";
    EXPECT_THAT(read(folder + "/plan.yaml"), HasSubstr(std::string("order: \"") + order + "\"\n"));
    // A plan says its order to those who take it.
    write("again.yaml", head + "plan: {file: \"" + folder + "/plan.yaml\"}\n");
    const std::string again = std::string("again_") + order;
    const Outcome taken = run({"again.yaml", "--out", again});
    EXPECT_EQ(taken.code, 0) << taken.err;
    EXPECT_EQ(result(again, "planned", "estimate_ms"), result(order, "planned", "estimate_ms"));
    EXPECT_EQ(read(again + "/devices=2,microbatches=8/planned/schedule.csv"),
              read(folder + "/schedule.csv"));
  }
  EXPECT_EQ(std::stod(result("open", "planned", "simulate_ms")), best);
  EXPECT_THAT(outcome.out, HasSubstr(" order: "));
}

TEST_F(Choices, RanksAreMatchedToDevices) {
  // Much passes between the second and the third quarter of the model: they share a bridge.
  std::string layers =
      "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
      "bytes,weight_saved_bytes,temporary_bytes\n";
  for (int l = 0; l < 4; ++l)
    layers += std::string(1, static_cast<char>('a' + l)) + ",1,1,1," +
              (l == 1 ? "50000000" : "1000") + ",1000,1000,0,0\n";
  write("layers.csv", layers);
  write("open.yaml",
        "version: 1\nmodel: layers.csv\ncluster: 3090_x8.yaml\nbaselines: [1f1b]\n"
        "cases: {devices: 4, microbatches: 4}\nplan: {families: 1f1b, stages_per_rank: 1, devices: "
        "search}\n");
  const Outcome outcome = run({"open.yaml", "--out", "out", "--verbose"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  chosen: devices 0 2 3 1: "));
  EXPECT_THAT(outcome.out, HasSubstr("  not: devices 0 1 2 3: "));
  EXPECT_THAT(read("out/report.html"), HasSubstr("What the case left open"));
  EXPECT_THAT(read("out/devices=4,microbatches=4/planned/plan.yaml"),
              HasSubstr("device_of_rank: [0, 2, 3, 1]"));
  // All orders that differ were searched, so the bound is tight.
  EXPECT_EQ(result("out", "planned", "gap_fraction"), "0.000000");
  EXPECT_THAT(read("out/devices=4,microbatches=4/case.json"),
              HasSubstr("without a certificate, every order of the devices"));
}

// One order of the devices is searched with all effort, which is all that two devices have.
TEST_F(Choices, ThoseThatMayYetBeBestAndWereSearchedBrieflyAloneLeaveTheCaseUnfinished) {
  std::string layers =
      "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
      "bytes,weight_saved_bytes,temporary_bytes\n";
  for (int l = 1; l <= 18; ++l)
    layers += "l" + std::to_string(l) + ",1,1,1," + std::to_string(l * 200000) + ",1000,1000,0,0\n";
  write("layers.csv", layers);
  write("open.yaml",
        "version: 1\nmodel: layers.csv\ncluster: 3090_x8.yaml\nbaselines: []\n"
        "engines: [estimate]\ncases: {devices: [2, 6], microbatches: 4}\n"
        "plan: {families: zb_greedy, stages_per_rank: 1, devices: search, iterations: 1}\n");
  const Outcome outcome = run({"open.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto said = HasSubstr(" of the choices that are open may be faster");
  EXPECT_THAT(read("out/devices=2,microbatches=4/case.json"), ::testing::Not(said));
  EXPECT_THAT(read("out/devices=6,microbatches=4/case.json"), said);
}

TEST_F(Choices, WhereNothingFitsTheOrderOfDevicesThatLacksLeastHasNoTime) {
  write("layers.csv",
        "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
        "temporary_bytes\na,1,1,1000,30000000000,1,0,0\nb,1,1,1000,1000,1,0,0\n"
        "c,1,1,9000,1000,1,0,0\n");
  write("open.yaml",
        "version: 1\nmodel: layers.csv\ncluster: 3090_x8.yaml\nbaselines: []\n"
        "cases: {devices: 3, microbatches: 4}\nplan: {families: 1f1b, stages_per_rank: 1, devices: "
        "search}\n");
  const Outcome outcome = run({"open.yaml", "--out", "out", "--verbose"});
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("  chosen: devices [0-2 ]+: closest to fitting\n"));
  EXPECT_THAT(read("out/report.html"), HasSubstr("closest to fitting"));
}

}  // namespace
}  // namespace pfeife
