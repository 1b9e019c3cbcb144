// A config with `parallel`, as a user sees it: the table, the files, the pipeline that is planned.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Rows by column.
std::vector<std::map<std::string, std::string>> rows_of(const std::string& csv) {
  const auto cells = [](const std::string& line) {
    std::vector<std::string> made;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) made.push_back(cell);
    return made;
  };
  std::istringstream in(csv);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = cells(line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> values = cells(line);
    EXPECT_EQ(values.size(), columns.size()) << line;
    std::map<std::string, std::string>& row = rows.emplace_back();
    for (std::size_t c = 0; c < columns.size(); ++c) row[columns[c]] = values.at(c);
  }
  return rows;
}

class ChosenMesh : public ProgramTest {
 protected:
  /// A shipped config on fewer devices, with little search in its pipeline.
  Outcome reduced(const std::string& name, const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{(configs() / "meshes" / (name + ".yaml")).string()};
    for (const char* setting : {"plan.iterations=1", "plan.families=1f1b"})
      arguments.insert(arguments.end(), {"--set", setting});
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    return run(arguments);
  }
};

// The shortest step of all that fits; and what is exported, and the pipeline that is planned, are
// of that mesh.
TEST_F(ChosenMesh, IsTheFastestThatFitsAndIsWhatIsExportedAndPlanned) {
  const Outcome outcome = reduced("llama3_70b_64_h100", {"training.microbatch_size=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::filesystem::path out = "results/llama3_70b_64_h100";
  const auto rows = rows_of(read(out / "meshes.csv"));
  ASSERT_GT(rows.size(), 10u);
  auto best = rows.front();
  for (const auto& row : rows) {
    EXPECT_EQ(std::stoi(row.at("tp")) * std::stoi(row.at("pp")) * std::stoi(row.at("dp")), 64);
    if (row.at("fits") == "1" && std::stod(row.at("step_ms")) < std::stod(best.at("step_ms")))
      best = row;
    EXPECT_LE(std::stod(row.at("bound_ms")), std::stod(row.at("step_ms")));
  }
  EXPECT_EQ(best, rows.front());
  EXPECT_EQ(best.at("fits"), "1");
  EXPECT_THAT(outcome.out, ContainsRegex(" " + best.at("tp") + " +" + best.at("pp") + " +" +
                                         best.at("dp") + " [^\n]*[*] "));
  // On 80 columns, a mesh a line: what does not fit says by how much, in the order of steps.
  std::istringstream lines(outcome.out);
  const std::regex row(R"( *\d+ +\d+ +\d+  mb .*?  +(\d+) .* \+\d+\.\d !)");
  std::vector<int> steps;
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
    if (std::regex_match(line, found, row)) steps.push_back(std::stoi(found[1]));
  }
  EXPECT_GT(steps.size(), 2u) << outcome.out;
  EXPECT_TRUE(std::ranges::is_sorted(steps)) << outcome.out;
  // 128 sequences over dp replicas, one a microbatch.
  const int microbatches = 128 / std::stoi(best.at("dp"));
  const std::filesystem::path plan =
      out / ("devices=" + best.at("pp") + ",microbatches=" + std::to_string(microbatches));
  ASSERT_EQ(run({"export", (plan / "planned").string(), "--for", "megatron", "-o", "flags"}).code,
            0);
  const std::string flags = read("flags/megatron_args.sh");
  EXPECT_THAT(flags, HasSubstr("--tensor-model-parallel-size " + best.at("tp") + "\n"));
  EXPECT_THAT(flags, HasSubstr("--pipeline-model-parallel-size " + best.at("pp") + "\n"));
  EXPECT_THAT(flags, HasSubstr("--micro-batch-size 1\n"));
  EXPECT_THAT(flags, HasSubstr("--global-batch-size 128\n"));
  EXPECT_EQ(result(out, "1f1b", "devices"), best.at("pp"));
  EXPECT_EQ(result(out, "1f1b", "microbatches"), std::to_string(microbatches));
  // Cut anew, the pipeline of the mesh is not slower than with the stages of which it was priced.
  EXPECT_LE(std::stod(result(out, "planned", "estimate_ms")),
            std::stod(best.at("step_ms")) * 1.0001);
  // The pipeline's own config is an experiment by itself.
  const std::filesystem::path own = out / "llama3_70b_64_h100.yaml";
  ASSERT_EQ(run({own.string(), "--out", "again"}).code, 0);
  EXPECT_EQ(result("again", "planned", "simulate_ms"), result(out, "planned", "simulate_ms"));
}

// Llama 3 405B as published: 16,384 devices are one pipeline of 16, and what a rank does adds up to
// the step. 6 FLOPs a parameter and token and attention, recomputed nowhere, take at least the
// compute that is stated, at the peak.
TEST_F(ChosenMesh, OfSixteenThousandDevicesIsSimulatedWithWhatItsStepIsMadeOf) {
  const Outcome outcome = run({(configs() / "meshes/llama3_405b_16384_h100.yaml").string()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::filesystem::path out = "results/llama3_405b_16384_h100";
  const auto row = rows_of(read(out / "meshes.csv")).front();
  const auto ms = [&](const std::string& column) { return std::stod(row.at(column + "_ms")); };
  EXPECT_NEAR(
      ms("compute") + ms("collectives") + ms("exposed_reduction") + ms("optimizer") + ms("waiting"),
      ms("step"), 1e-3);
  EXPECT_GT(ms("compute"), 1e3 * 2048 * 8192 * 6 * 405e9 / (16384 * 989e12));
  EXPECT_THAT(outcome.out, ContainsRegex("the step [*], a rank's mean: [0-9.]+ ms compute"));
  EXPECT_EQ(result(out, "planned", "devices"), "16");
  // Gradients on their way back share the NICs with what replicas reduce.
  const double slower = std::stod(result(out, "planned", "simulate_ms")) / ms("step");
  EXPECT_GT(slower, 1.005);
  EXPECT_LT(slower, 1.03);
}

// All-to-alls of experts are longest of what a rank does: side by side with compute they are not
// added to it, and where compute slows, the step does, if by less.
TEST_F(ChosenMesh, HidesCollectivesWhereForwardAndBackwardAreSideBySide) {
  write("experts.yaml",
        "version: 1\nmodel: " + (configs() / "architectures/qwen3_30b_a3b.yaml").string() +
            "\ncluster: " + (configs() / "clusters/h100_sxm_hosts.yaml").string() +
            "\ntraining: {global_batch: 128, microbatch_size: 1, sequence: 16384}\n"
            "parallel: {devices: 32, tp: 1, pp: 4, dp: 8, ep: 8, zero: 1, recompute: full, "
            "stages_per_rank: [2]}\n"
            "plan: {families: [dualpipev], allocator: none}\nbaselines: []\n");
  const auto step = [&](const std::string& factor, const std::string& row,
                        const std::string& overlap = "sums") {
    const Outcome outcome = run({"experts.yaml", "--set", "parallel.overlap_factor=" + factor,
                                 "--set", "parallel.overlap=" + overlap, "--out", factor});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return std::stod(result(factor, row, "estimate_ms"));
  };
  const double hidden = step("1", "planned"), slowed = step("1.5", "planned");
  EXPECT_LT(hidden, slowed);
  EXPECT_LT(slowed, 1.5 * hidden);
  EXPECT_THAT(read("1/devices=4,microbatches=16/planned/schedule.csv"), HasSubstr("OVERLAP_F_B"));
  EXPECT_NE(step("1", "planned", "streams"), hidden);
  EXPECT_THAT(read("1/devices=4,microbatches=16/planned/stages.csv"),
              HasSubstr("forward_of,backward_of,with_backward_ns"));
  EXPECT_THAT(read("1/results.json"), HasSubstr("of which compute hides"));
}

// By hand, with a port of 0.08 GB/s a host: replicas on both hosts send at least the 1.5 GB of
// gradients through it, 19 s; of two stages each of 128 sequences sends 2.6 MB there and back, 4 s
// each way, where embedding and head share no gradient.
TEST_F(ChosenMesh, OfTwoHostsFollowsTheWireBetween) {
  std::ifstream architecture(configs() / "architectures/gpt2_large.yaml");
  std::string text{std::istreambuf_iterator<char>(architecture), {}};
  const std::string tied = "tied_embedding: true";
  ASSERT_NE(text.find(tied), std::string::npos);
  write("untied.yaml", text.replace(text.find(tied), tied.size(), "tied_embedding: false"));
  const auto best = [&](const std::string& pp) {
    const Outcome outcome = reduced(
        "gpt2_large_2x8_3090", {"model=" + (folder_ / "untied.yaml").string(), "parallel.pp=" + pp,
                                "cluster={file: ../clusters/3090_hosts.yaml, "
                                "set: {between_hosts.bandwidth: 0.01 GB/s}}"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return rows_of(read("results/gpt2_large_2x8_3090/meshes.csv")).front();
  };
  EXPECT_GT(std::stod(best("1").at("step_ms")), 19000);
  const auto chosen = best("search");
  EXPECT_NE(chosen.at("pp"), "1");
  EXPECT_GT(std::stod(chosen.at("step_ms")), 4000);
  EXPECT_LT(std::stod(chosen.at("step_ms")), 19000);
}

// The mesh is chosen by whole microbatches; its pipeline is planned with slices beside them.
TEST_F(ChosenMesh, ItsPipelineIsPlannedWithSlices) {
  const Outcome outcome =
      reduced("llama3_70b_64_h100",
              {"parallel.devices=32", "parallel.tp=8", "parallel.pp=4", "parallel.dp=1",
               "parallel.zero=0", "training.microbatch_size=1", "training.global_batch=8",
               "plan.slices=[4]", "plan.families=[1f1b, seq1f1b]"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string csv = read("results/llama3_70b_64_h100/results.csv");
  const auto rows = rows_of(std::regex_replace(csv, std::regex("\"[^\"]*\""), "case"));
  EXPECT_EQ(rows.at(0).at("family"), "seq1f1b");
  ASSERT_EQ(rows.at(1).at("family"), "1f1b");
  for (const char* column : {"simulate_ms", "peak_memory_bytes"})
    EXPECT_LT(std::stod(rows[0].at(column)), std::stod(rows[1].at(column))) << column;
}

TEST_F(ChosenMesh, DoesNotFitAndSaysWhatToDo) {
  const Outcome outcome = reduced("llama3_70b_64_h100", {"parallel.devices=1"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_MESSAGE(outcome.err.substr(outcome.err.find("pfeife-exp")));
}

class MeshMistakes : public ChosenMesh {
 protected:
  /// The message about a config of GPT-2 large on 3090s, with this `parallel`.
  std::string message(const std::string& parallel, const std::string& rest = "",
                      const std::string& model = "gpt2_large") {
    write("bad.yaml", "version: 1\nmodel: " + model + ".yaml\ncluster: 3090_hosts.yaml\n" +
                          "training: {global_batch: 128}\nparallel: " + parallel + "\n" + rest);
    for (const char* file : {"architectures/gpt2_large", "clusters/3090_hosts"})
      std::filesystem::copy_file(
          configs() / (std::string(file) + ".yaml"),
          folder_ / std::filesystem::path(std::string(file) + ".yaml").filename(),
          std::filesystem::copy_options::overwrite_existing);
    const Outcome outcome = run({"bad.yaml", "--out", "out", "--quiet"});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out")) << "left files behind";
    return outcome.err;
  }
};

TEST_F(MeshMistakes, UnknownKey) { EXPECT_MESSAGE(message("{devices: 16, tpp: 2}")); }

TEST_F(MeshMistakes, WhatDoesNotDivide) {
  EXPECT_MESSAGE(message("{devices: 16, tp: 16}"));
  EXPECT_MESSAGE(message("{devices: 16, pp: 5}"));
  EXPECT_MESSAGE(message("{devices: 15}"));
  EXPECT_MESSAGE(message("{devices: 16, ep: 2}"));
}

// Within one host a mesh needs no link between hosts.
TEST_F(MeshMistakes, DevicesThatAreNotAlikeOrNotConnected) {
  const auto of_cluster = [&](const std::string& devices, const std::string& links,
                              const std::string& parallel) {
    write("c.yaml",
          "version: 1\nname: c\ndevice_kinds:\n  a: {memory: 80 GiB, memory_bandwidth: 1 TB/s, "
          "peak: {bf16: 100 TFLOP/s, fp32: 10 TFLOP/s}}\n  b: {memory: 40 GiB, memory_bandwidth: 1 "
          "TB/s, "
          "peak: {bf16: 90 TFLOP/s, fp32: 9 TFLOP/s}}\ndevices: " +
              devices + "\n" + links);
    std::filesystem::copy_file(configs() / "architectures/gpt2_large.yaml",
                               folder_ / "gpt2_large.yaml",
                               std::filesystem::copy_options::overwrite_existing);
    write("bad.yaml",
          "version: 1\nmodel: gpt2_large.yaml\ncluster: c.yaml\ntraining: {global_batch: 8}\n"
          "parallel: " +
              parallel + "\nplan: {iterations: 1}\nengines: [estimate]\n");
    return run({"bad.yaml", "--out", "out", "--quiet"});
  };
  const std::string one_switch =
      "links: [{name: port, per: device, bandwidth: 100 GB/s}]\nroutes: [{over: port, latency: 5 "
      "us}]\n";
  const std::string pairs =
      "links: [{name: bridge, between: [[0, 1]], bandwidth: 40 GB/s}, {name: port, per: device, "
      "bandwidth: 10 GB/s}]\nroutes: [{over: bridge, latency: 5 us}, {over: port, latency: 9 "
      "us}]\n";
  EXPECT_EQ(of_cluster("[{kind: a, count: 8}]", one_switch, "{devices: 8}").code, 0);
  EXPECT_MESSAGE(of_cluster("[{kind: a, count: 8}]", one_switch, "{devices: 16}").err);
  EXPECT_MESSAGE(of_cluster("[{kind: a, count: 8}]", one_switch, "{devices: 16, pp: 1}").err);
  EXPECT_MESSAGE(
      of_cluster("[{kind: a, count: 4}, {kind: b, count: 4}]", one_switch, "{devices: 8}").err);
  EXPECT_MESSAGE(of_cluster("[{kind: a, count: 4}]", pairs, "{devices: 4}").err);
}

TEST_F(MeshMistakes, InThePipelinesPlanAreFoundBeforeTheMeshIs) {
  EXPECT_MESSAGE(message("{devices: 16}", "plan: {familes: [1f1b]}\n"));
  EXPECT_MESSAGE(message("{devices: 16}", "plan: {file: plan.yaml}\n"));
}

TEST_F(MeshMistakes, AnArchitectureWithAnUnknownKeyOrNone) {
  write("typo.yaml", "version: 1\nname: typo\nlayers: 4\nhiden: 64\n");
  EXPECT_MESSAGE(message("{devices: 16}", "", "typo"));
  EXPECT_MESSAGE(message("{devices: 16}", "", "nowhere"));
}

// One of Megatron-LM's two schedules needs several stages a rank.
TEST_F(ChosenMesh, OfAFrameworkTakesThoseOfItsSchedulesThatStagesARankAllow) {
  const std::string mesh =
      "version: 1\nmodel: " + (configs() / "architectures/gpt2_large.yaml").string() +
      "\ncluster: " + (configs() / "clusters/3090_hosts.yaml").string() +
      "\ntraining: {global_batch: 16, microbatch_size: 1}\n"
      "parallel: {devices: 4, tp: 2, pp: 2, dp: 1, zero: 0, stages_per_rank: [1]}\n";
  write("megatron.yaml", mesh + "plan: {for: megatron, iterations: 1}\nbaselines: []\n");
  const Outcome outcome = run({"megatron.yaml", "--out", "out"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(result("out", "planned", "family"), "1f1b");
  // What the user asks for is refused at the user's own line.
  write("own.yaml",
        mesh + "plan:\n  iterations: 1\n  families: [interleaved_1f1b]\n  stages_per_rank: [1]\n");
  const Outcome refused = run({"own.yaml", "--out", "own"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, ContainsRegex("own.yaml:8:[0-9]+: plan.families: interleaved_1f1b "));
}

// DeepSpeed divides the optimizer's state beside pipelines, torchtitan all or nothing.
TEST_F(ChosenMesh, OfAFrameworkHasTheZeroThatItRuns) {
  for (const auto& [framework, allowed] : {std::pair{"torchtitan", "03"}, {"deepspeed", "01"}}) {
    write("mesh.yaml",
          "version: 1\nmodel: " + (configs() / "architectures/gpt2_large.yaml").string() +
              "\ncluster: " + (configs() / "clusters/3090_hosts.yaml").string() +
              "\ntraining: {global_batch: 16, microbatch_size: 1}\n"
              "parallel: {devices: [4]}\nplan: {for: " +
              framework + "}\n");
    EXPECT_EQ(run({"mesh.yaml", "--out", framework}).code, 0);
    for (const auto& row : rows_of(read(std::string(framework) + "/devices=4/meshes.csv"))) {
      EXPECT_THAT(allowed, HasSubstr(row.at("zero")));
      if (framework == std::string("deepspeed")) {
        EXPECT_EQ(row.at("cp"), "1");
        EXPECT_EQ(row.at("stages_per_rank"), "1");
      }
    }
  }
}

}  // namespace
}  // namespace pfeife
