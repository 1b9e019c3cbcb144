// `plan.head`: the output layer on the last rank or on all, as a user sees it, and beside measured
// runs.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "experiments/studies/shared_head/automatic.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/schedules/families.h"
#include "tests/experiments/program.h"

namespace pfeife {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class SharedHeadPlans : public ProgramTest {
 protected:
  static std::vector<std::string> gemma(const std::vector<std::string>& settings) {
    std::vector<std::string> arguments{(configs() / "meshes/gemma_2b_8_a100_head.yaml").string()};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    return arguments;
  }
  static constexpr const char* kOut = "results/gemma_2b_8_a100_head";
};

// 256,128 words are 4.8 layers of the model's 18: alone on a rank of eight they take longer than
// the mean of all. Links that nobody shares: the simulator takes as long as the estimate. The plan
// is read again as it was.
TEST_F(SharedHeadPlans, ManyWordsAreDividedByAllRanksAndTheScreenSaysWhy) {
  const Outcome outcome = run(gemma(
      {"simulation.links=delay", "simulation.queues=none", "simulation.launch_overhead=0 us"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::regex sentence(
      R"(output layer on all ranks: ([0-9.]+) ms estimated;\s+output layer on the last rank:\s+([0-9.]+) ms)");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.out, found, sentence)) << outcome.out;
  EXPECT_LT(1.1 * std::stod(found[1]), std::stod(found[2]));
  EXPECT_EQ(result(kOut, "planned", "estimate_ms"), result(kOut, "planned", "simulate_ms"));
  EXPECT_TRUE(shares_head({.family = result(kOut, "planned", "family")}));
  const std::filesystem::path plan = folder_ / kOut / "devices=8,microbatches=64/planned/plan.yaml";
  write("again.yaml", "version: 1\nmodel: {file: " + std::string(kOut) +
                          "/mesh/mesh.yaml, format: mesh}\ncluster: " + kOut +
                          "/mesh/cluster.yaml\nplan: {file: \"" + plan.string() +
                          "\"}\nbaselines: []\n");
  const Outcome again = run({"again.yaml", "--out", "again"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(result("again", "planned", "estimate_ms"), result(kOut, "planned", "estimate_ms"));
  EXPECT_EQ(result("again", "planned", "peak_memory_bytes"),
            result(kOut, "planned", "peak_memory_bytes"));
}

// 4,096 words are a thirteenth of a layer.
TEST_F(SharedHeadPlans, FewWordsStayOnTheLastRank) {
  write("few.yaml",
        "version: 1\nname: few\nlayers: 32\nhidden: 2048\nheads: 16\n"
        "feed_forward: 8192\nvocabulary: 4096\nsequence: 2048\nnorm: rms\n"
        "activation: gelu\nattention: fused\nposition: rotary\nbias: false\n"
        "tied_embedding: false\n");
  const Outcome outcome = run(gemma({"model=" + (folder_ / "few.yaml").string()}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              ContainsRegex("output layer on the last rank: [0-9.]+ ms estimated;[ \n]+"
                            "output layer on all ranks:[ \n]+[0-9.]+ ms"));
  EXPECT_FALSE(shares_head({.family = result(kOut, "planned", "family")}));
}

TEST_F(SharedHeadPlans, WhatCannotBeDividedStaysAndTheScreenSaysWhy) {
  const Outcome outcome = run(gemma({"parallel.tp=2", "parallel.pp=4"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("not possible, a rank of tp"));
  const Outcome refused = run(gemma({"parallel.tp=2", "parallel.pp=4", "plan.head=shared"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("have parts of the output layer already"));
}

// By hand. Layers of F = 1, B = 2 ms, an output layer of 4 and 8 ms: last of four ranks a
// microbatch takes 12 ms at least; divided, 3 ms of layers and 3 of its share on each rank.
TEST_F(SharedHeadPlans, ALayerTableSaysByAWordWhatIsDivided) {
  std::string table =
      "name,forward_ms,backward_ms,output_bytes,parameter_bytes,saved_bytes,weight_saved_bytes,"
      "temporary_bytes,words\n";
  for (const char* layer : {"a", "b", "c", "d"}) table += std::string(layer) + ",1,2,0,0,0,0,0,\n";
  write("model.csv", table + "head,4,8,0,0,0,0,0,output\n");
  const auto step = [&](const std::string& head) {
    write(head + ".yaml", "version: 1\nmodel: model.csv\ncluster: " +
                              (configs() / "clusters/a100_sxm4_80gb_x8.yaml").string() +
                              "\ncases: {devices: 4, microbatches: 100}\nengines: [estimate]\n"
                              "plan: {head: " +
                              head + ", families: [1f1b" +
                              (head == "auto" ? ", vocab_1, vocab_2, interlaced" : "") +
                              "], stages_per_rank: [1]}\nbaselines: []\n");
    const Outcome outcome = run({head + ".yaml"});
    EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    return std::stod(result("results/" + head, "planned", "estimate_ms"));
  };
  const double last = step("last"), divided = step("auto");
  EXPECT_GE(last, 100 * 12);
  EXPECT_LT(last, 100 * 12 + 40);
  EXPECT_GE(divided, 100 * 6);
  EXPECT_LT(divided, 100 * 6 + 60);
}

TEST_F(SharedHeadPlans, FamiliesAndHeadsThatContradictAreRefused) {
  const auto refusal = [&](const std::string& plan) {
    write("c.yaml", "version: 1\nmodel: " + (configs() / "tables/two_stage.csv").string() +
                        "\ncluster: " + (configs() / "clusters/a100_sxm4_80gb_x8.yaml").string() +
                        "\ncases: {devices: 2, microbatches: 4}\nplan: " + plan + "\n");
    const Outcome outcome = run({"c.yaml"});
    EXPECT_EQ(outcome.code, 2) << plan;
    return outcome.err;
  };
  EXPECT_THAT(refusal("{families: [vocab_1]}"), HasSubstr("set plan.head: shared, or auto"));
  EXPECT_THAT(refusal("{families: [1f1b], head: shared}"), HasSubstr("on the last rank; name"));
  EXPECT_THAT(refusal("{head: shared}"), HasSubstr("layer tables with the column words"));
}

}  // namespace

namespace shared_head {
namespace {

std::vector<PublishedStages> measured_runs() {
  return read_runs(PFEIFE_SOURCE_DIR
                   "/experiments/studies/shared_head/data/vocabulary_parallelism.csv");
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// 32 layers by the mean measured times of a run that shares the output layer, and all words.
Layers layers_of_mean(const PublishedStages& run) {
  const auto layer = [](double forward_us, double input_us, double weight_us) {
    return LayerTimes{.forward = nanoseconds_from_ms(forward_us / 1e3),
                      .backward_input = nanoseconds_from_ms(input_us / 1e3),
                      .backward_weight = nanoseconds_from_ms(weight_us / 1e3)};
  };
  Layers layers{.name = "gpt", .digest = std::string(64, '0')};
  for (int l = 0; l < 32; ++l)
    layers.layers.push_back({.name = "layer " + std::to_string(l),
                             .times = {layer(mean(run.forward) / 4, mean(run.backward) / 4, 0)}});
  const double output = mean(run.output) * 8;
  layers.layers.push_back({.name = "output", .times = {layer(output / 3, output / 3, output / 3)}});
  for (std::size_t l = 0; l + 1 < layers.size(); ++l)
    layers.values.push_back({.name = "value " + std::to_string(l),
                             .producer = LayerId{l},
                             .consumers = {LayerId{l + 1}},
                             .bytes = Bytes{1},
                             .gradient_bytes = Bytes{1}});
  layers.words = all_words(layers, std::nullopt, LayerId{32});
  layers.words->input =
      nanoseconds_from_ms(8 * (mean(run.embedding_forward) + mean(run.embedding_backward)) / 1e3);
  return layers;
}

// Given the means over their stages, which the authors give four layers each: the same step as with
// their cuts or a shorter one, within 5 % of the measured one.
TEST(SharedHeadOfRuns, OwnCutsAreNeverSlowerThanFourLayersAStage) {
  std::size_t compared = 0;
  for (const PublishedStages& run : measured_runs()) {
    if (run.family() == "1f1b") continue;
    const Layers layers = layers_of_mean(run);
    const Cluster cluster = uniform_cluster(8, {.memory = kGiB}, {1e15}, Nanoseconds{0});
    const Planned planned = plan(model_of(layers), cluster,
                                 {.devices = 8,
                                  .microbatches = run.microbatches,
                                  .plan = {.families = {run.family()},
                                           .stages_per_rank = {1},
                                           .head = PlanSettings::Head::Shared,
                                           .iterations = 20},
                                  .baselines = {},
                                  .simulate = false});
    ASSERT_TRUE(planned.found());
    const ScheduleSpec spec{.family = run.family(), .ranks = 8, .microbatches = run.microbatches};
    const Prices four = evaluate(layers, cluster, generate(spec), placement_for(spec),
                                 Partition{{3, 7, 11, 15, 19, 23, 27}});
    const double step = milliseconds(step_time(planned.best().estimated));
    EXPECT_LE(step, milliseconds(four.estimate)) << run.name;
    EXPECT_NEAR(step / run.step_ms, 1, 0.05) << run.name;
    ++compared;
  }
  EXPECT_EQ(compared, 24u);
}

// From shapes alone: the measured runs that share the output layer are the fastest for every
// sequence and number of words, and `auto` shares it.
TEST(SharedHeadOfRuns, AutoSharesWhereSharingIsMeasuredToBeFaster) {
  const Network network =
      load_hosts(PFEIFE_SOURCE_DIR "/configs/clusters/a100_sxm4_80gb_hosts.yaml");
  std::size_t planned_runs = 0;
  for (const PublishedStages& run : measured_runs()) {
    if (run.method != "redistributed") continue;
    const Planned planned = planned_automatically(run, network);
    ASSERT_TRUE(planned.found()) << run.name;
    EXPECT_TRUE(shares_head(planned.best().plan.spec)) << run.name;
    EXPECT_LE(bound_of(planned)->time, step_time(planned.best().estimated)) << run.name;
    ++planned_runs;
  }
  EXPECT_EQ(planned_runs, 8u);
}

}  // namespace
}  // namespace shared_head
}  // namespace pfeife
