// What a config may leave open besides cuts and schedule: microbatch size, devices of the ranks.
#include <gmock/gmock.h>

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
        "plan: {families: certified, loops: [1, 2]}\nbaselines: [1f1b]\n");
  const Outcome outcome = run({"open.yaml", "--out", "open"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("    chosen: " + result("open", "planned", "microbatches") +
                                     " microbatch"));
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

TEST_F(Choices, RanksAreMatchedToDevices) {
  // Much passes between the second and the third quarter of the model: they share a bridge.
  std::string layers =
      "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
      "bytes,weight_saved_bytes,temporary_bytes\n";
  for (int l = 0; l < 4; ++l)
    layers += std::string(1, static_cast<char>('a' + l)) + ",1,1,1," +
              (l == 1 ? "50000000" : "1000") + ",1000,1000,0,0\n";
  write("layers.csv", layers);
  write(
      "open.yaml",
      "version: 1\nmodel: layers.csv\ncluster: 3090_x8.yaml\nbaselines: [1f1b]\n"
      "cases: {devices: 4, microbatches: 4}\nplan: {families: 1f1b, loops: 1, devices: search}\n");
  const Outcome outcome = run({"open.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("    chosen: devices 0 2 3 1: "));
  EXPECT_THAT(outcome.out, HasSubstr("    not:    devices 0 1 2 3: "));
  EXPECT_THAT(read("out/devices=4,microbatches=4/planned/plan.yaml"),
              HasSubstr("device_of_rank: [0, 2, 3, 1]"));
  // All orders that differ were searched, so the bound is tight.
  EXPECT_EQ(result("out", "planned", "gap"), "0.000000");
  EXPECT_THAT(read("out/devices=4,microbatches=4/case.json"),
              HasSubstr("any order of the devices"));
}

}  // namespace
}  // namespace pfeife
