// Each kind of mistake gives one message with its place and a remedy, the right exit code, and no
// file.
#include <gmock/gmock.h>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/roofline.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Mistakes : public ProgramTest {
 protected:
  Mistakes() {
    write("layers.csv",
          "name,forward_ms,backward_input_ms,backward_weight_ms,output_bytes,parameter_bytes,saved_"
          "bytes,"
          "weight_saved_bytes,temporary_bytes\n"
          "a,1,1,1,1000,1000,1000,0,0\nb,1,1,1,1000,1000,1000,0,0\nc,1,1,1,1000,1000,1000,0,0\nd,1,"
          "1,1,0,1000,1000,0,0\n");
    for (const char* name : {"laptop", "3090_x8"})
      std::filesystem::copy_file(configs() / "clusters" / (std::string(name) + ".yaml"),
                                 folder_ / (std::string(name) + ".yaml"));
    write("good.yaml", kGood);
  }

  /// Runs a config and checks what holds for every mistake; its one line of message.
  std::string message(const std::string& config, int code,
                      const std::vector<std::string>& more = {}) {
    write("bad.yaml", config);
    std::vector<std::string> arguments{"bad.yaml", "--out", "out"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out")) << "left files behind";
    return outcome.err;
  }

  static constexpr const char* kGood =
      "version: 1\nmodel: layers.csv\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 4}\n";
};

TEST_F(Mistakes, NoneInTheConfigThatTheOthersAreMadeFrom) {
  const Outcome outcome = run({"good.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Mistakes, UnknownKey) { EXPECT_MESSAGE(message(std::string(kGood) + "plans: {}\n", 2)); }

// The list may be meant for the key of that name in the plural: the hint to `cases` would lead
// astray.
TEST_F(Mistakes, AKeyInTheSingular) {
  EXPECT_MESSAGE(message(kGood, 2, {"--set", "plan.family=[1f1b]"}));
  EXPECT_MESSAGE(message(kGood, 2, {"--set", "training.precision=bf16"}));
  EXPECT_MESSAGE(message(kGood, 2, {"--set", "cases.step_below=3 ms"}));
  EXPECT_MESSAGE(message(kGood, 2, {"--set", "cases.devices=02"}));
}

TEST_F(Mistakes, UnknownKeyOfAList) {
  EXPECT_MESSAGE(message(std::string(kGood) + "plan: {familes: [1f1b]}\n", 2));
}

TEST_F(Mistakes, MissingUnit) {
  EXPECT_MESSAGE(message(std::string(kGood) + "plan: {reserve: 2}\n", 2));
}

TEST_F(Mistakes, WrongType) {
  EXPECT_MESSAGE(message(std::string(kGood) + "baselines: {gpipe: yes}\n", 2));
}

TEST_F(Mistakes, MissingFile) {
  EXPECT_MESSAGE(message("version: 1\nmodel: layer.csv\ncluster: laptop.yaml\n", 2));
  EXPECT_THAT(run({"nowhere.yaml"}).err,
              StartsWith("pfeife-exp: nowhere.yaml: there is no such file"));
}

TEST_F(Mistakes, TruncatedArchive) {
  std::filesystem::copy_file(configs() / "models" / "tiny_gpt.pt2", folder_ / "half.pt2");
  std::filesystem::resize_file(folder_ / "half.pt2",
                               std::filesystem::file_size(folder_ / "half.pt2") / 2);
  EXPECT_MESSAGE(message("version: 1\nmodel: half.pt2\ncluster: laptop.yaml\n", 2));
}

TEST_F(Mistakes, ANumberOfMicrobatchesThatTheFamilyCannotDo) {
  EXPECT_MESSAGE(
      message("version: 1\nmodel: layers.csv\ncluster: laptop.yaml\ncases: {devices: 2, "
              "microbatches: 5}\n"
              "plan: {families: interleaved_1f1b}\n",
              2));
}

// A million microbatches through two and four stages: hundreds of GiB of schedules.
TEST_F(Mistakes, MoreMicrobatchesThanThisMachineCanHold) {
  const std::string text = message(kGood, 2,
                                   {"--set", "cases.microbatches=1000000", "--set",
                                    "plan.stages_per_rank=[1, 2]", "--set", "plan.iterations=1"});
  EXPECT_THAT(text, HasSubstr(" of this machine's memory, and "));
  EXPECT_THAT(text, HasSubstr("available; take fewer microbatches"));
}

TEST_F(Mistakes, ABaselineThatCannotBeIsShownAndFailsNothing) {
  const Outcome outcome = run({"good.yaml", "--out", "out", "--set", "cases.microbatches=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("interleaved_1f1b +not possible: "));
}

TEST_F(Mistakes, ACutThroughAnInPlacePair) {
  const Graph graph = read_pt2(configs() / "models" / "resnet50.pt2", 1);
  const Cluster cluster = read_cluster(folder_ / "laptop.yaml");
  const Layers layers = layers_from_graph(graph, {roofline_profile(graph, cluster.kinds[0], {})});
  std::size_t cut = 0;
  while (cut < layers.size() && layers.layers[cut].no_cut_after.empty()) ++cut;
  ASSERT_LT(cut, layers.size()) << "resnet50 has in-place operators";
  std::filesystem::copy_file(configs() / "models" / "resnet50.pt2", folder_ / "resnet50.pt2");
  EXPECT_MESSAGE(message("version: 1\nmodel: resnet50.pt2\ncluster: laptop.yaml\nplan: {cuts: [" +
                             std::to_string(cut) + "]}\n",
                         2));
}

TEST_F(Mistakes, AStepOfCenturies) {
  write("slow.yaml",
        "version: 1\nname: slow\ndevice_kinds: {k: {memory: 1 GiB}}\ndevices: [{kind: k, count: "
        "2}]\nlinks: [{name: wire, between: [[0, 1]], bandwidth: 1 KB/s, latency: 1 "
        "us}]\nroutes: [{over: "
        "wire}]\n");
  write("huge.csv",
        "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_"
        "bytes,temporary_bytes\n"
        "a,1,1,1000000000000,0,0,0,0\nb,1,1,8,0,0,0,0\n");
  EXPECT_MESSAGE(message("version: 1\nmodel: huge.csv\ncluster: slow.yaml\n", 2));
}

TEST_F(Mistakes, ASpeedThatTheRooflineNeeds) {
  write("plain.yaml",
        "version: 1\nname: plain\ndevice_kinds: {k: {memory: 1 GiB}}\ndevices: [{kind: k, count: "
        "2}]\nlinks: [{name: wire, between: [[0, 1]], bandwidth: 1 GB/s, latency: 1 us}]\nroutes: "
        "[{over: wire}]\n");
  std::filesystem::copy_file(configs() / "models" / "tiny_gpt.pt2", folder_ / "tiny_gpt.pt2");
  EXPECT_MESSAGE(message("version: 1\nmodel: tiny_gpt.pt2\ncluster: plain.yaml\n", 2));
  write("table.yaml", "version: 1\nmodel: layers.csv\ncluster: plain.yaml\n");
  EXPECT_EQ(run({"table.yaml", "--out", "table"}).code, 0) << "a table has times of its own";
}

TEST_F(Mistakes, ASkipThatPointsBackwards) {
  write("skips.csv", "value,from,to,bytes\nx,c,a,1000\n");
  EXPECT_MESSAGE(
      message("version: 1\nmodel: layers.csv\nskips: skips.csv\ncluster: laptop.yaml\n", 2));
}

TEST_F(Mistakes, AProfileWhereTheTableHasTimesAlready) {
  write("profile.yaml", "version: 1\n");
  EXPECT_MESSAGE(message(std::string(kGood) + "profile: profile.yaml\n", 2));
}

// A profile made by the roofline is one like any other: the same times come out of the file.
TEST_F(Mistakes, AProfileOfOtherTrainingIsRefusedAndOneThatFitsIsUsed) {
  const Graph graph = read_pt2(configs() / "models" / "tiny_gpt.pt2", 2);
  const Cluster cluster = read_cluster(folder_ / "laptop.yaml");
  const Training training{Precision::Fp32, Optimizer::Adam, 2};
  write("profile.yaml", profile_text(roofline_profile(graph, cluster.kinds[0], training), graph));
  std::filesystem::copy_file(configs() / "models" / "tiny_gpt.pt2", folder_ / "tiny_gpt.pt2");
  const std::string config =
      "version: 1\nmodel: tiny_gpt.pt2\ncluster: laptop.yaml\nplan: {families: 1f1b, "
      "stages_per_rank: 1}\n";
  const std::string with_profile = config + "profile: profile.yaml\n";
  message(with_profile + "training: {precision: bf16_amp, microbatch_size: 2}\n", 2);
  const std::string fitting = "training: {microbatch_size: 2}\n";
  write("roofline.yaml", config + fitting);
  write("measured.yaml", with_profile + fitting);
  ASSERT_EQ(run({"roofline.yaml", "--out", "roofline"}).code, 0);
  ASSERT_EQ(run({"measured.yaml", "--out", "measured"}).code, 0);
  EXPECT_EQ(result("measured", "planned", "estimate_ms"),
            result("roofline", "planned", "estimate_ms"));
}

TEST_F(Mistakes, CutsThatTheDevicesCannotShare) {
  EXPECT_MESSAGE(message(std::string(kGood) + "plan: {cuts: [0, 1]}\n", 2));
  EXPECT_MESSAGE(message(std::string(kGood) + "plan: {cuts: [9]}\n", 2));
}

TEST_F(Mistakes, AScheduleThatForgetsAForward) {
  const std::string config =
      "version: 1\nmodel: layers.csv\ncluster: laptop.yaml\nplan: {schedule: own.csv, cuts: [1]}\n";
  write("own.csv", "0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_MESSAGE(message(config, 2));
  write("own.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  EXPECT_MESSAGE(message(config, 2));
}

TEST_F(Mistakes, RanksOnDevicesThatDoNotExist) {
  EXPECT_MESSAGE(message(std::string(kGood) + "plan: {devices: [0, 7]}\n", 2));
}

TEST_F(Mistakes, AReserveThatLeavesNothing) {
  EXPECT_MESSAGE(message(std::string(kGood) + "plan: {reserve: 4 GiB}\n", 2));
}

// Expected, not wrong: the case is shown, and says which rank lacks how much.
TEST_F(Mistakes, AModelTooBigForItsDevices) {
  write(
      "big.yaml",
      "version: 1\nmodel: layers.csv\ncluster: laptop.yaml\ncases: {devices: 2, microbatches: 4}\n"
      "plan: {reserve: 4095.99 MiB}\n");
  const Outcome outcome = run({"big.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex(
                  "planned [*] +no plan fits: rank [01] needs .*, so it lacks .*; proven: "));
  EXPECT_THAT(outcome.err, HasSubstr("pfeife-exp: no case has a plan"));
  EXPECT_EQ(result("out", "planned", "feasible"), "0");
  EXPECT_EQ(run({"big.yaml", "--out", "out"}).code, 3) << "the same when nothing is computed";
}

TEST_F(Mistakes, AModelOfFewerLayersThanDevices) {
  write("wide.yaml",
        "version: 1\nmodel: layers.csv\ncluster: 3090_x8.yaml\n"
        "cases: {devices: 8, microbatches: 4}\nbaselines: []\n");
  const Outcome outcome = run({"wide.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("no plan found: the model can be cut into 4 stages at most"));
  EXPECT_THAT(outcome.err, HasSubstr("would help: 4 devices instead of 8: "));
}

TEST_F(Mistakes, OfTheCommandLine) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"good.yaml", "--shrad", "1/2"},
                                                    {"good.yaml", "--shard", "3/2"},
                                                    {"good.yaml", "--jobs", "many"},
                                                    {"good.yaml", "--jobs", "-1"},
                                                    {"good.yaml", "--jobs", "0"},
                                                    {"good.yaml", "good.yaml"},
                                                    {"good.yaml", "--set", "x"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results"));
}

TEST_F(Mistakes, AFolderForResultsThatIsAFile) {
  write("taken", "");
  for (const char* out : {"taken", "taken/below"}) {
    const Outcome outcome = run({"good.yaml", "--out", out});
    EXPECT_EQ(outcome.code, 4);
    EXPECT_EQ(outcome.err, std::string("pfeife-exp: cannot write ") + out +
                               ": Not a directory; choose another folder with --out\n");
  }
}

TEST_F(Mistakes, OutputThatCannotBeWritten) {
  std::filesystem::create_symlink("/dev/full", folder_ / "stdout");
  const Outcome outcome = wait(start({"good.yaml", "--out", "out", "--quiet"}));
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(read("stderr"), "pfeife-exp: standard output cannot be written\n");
}

// A full stack ends a program by a signal. A low limit is raised; where that is forbidden (a hard
// limit, without root), it is named.
TEST_F(Mistakes, OfTheStackLimitAreRaisedOrNamed) {
  const auto exit_with = [&](const std::string& limit) {
    const std::string command = "cd '" + folder_.string() + "' && ulimit " + limit +
                                " && exec " PFEIFE_EXP " '" +
                                (configs() / "two_stage.yaml").string() + "' --quiet >out 2>said";
    return std::system(command.c_str());
  };
  EXPECT_EQ(exit_with("-S -s 64"), 0) << read("said");
  if (exit_with("-s 64") != 0) {
    EXPECT_THAT(read("said"), HasSubstr("the stack limit is 64 KiB, and 1024 are needed"));
  }
}

}  // namespace
}  // namespace pfeife
