#include "planner/io/experiment/experiment_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "planner/io/experiment/experiment_case.h"
#include "planner/io/results/results_fields.h"
#include "tests/io/reference_tables.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A folder with an experiment and the (empty) files that it names.
class ExperimentConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + "." +
               std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (const char* name : {"layers.csv", "skips.csv", "model.pt2", "graph.txt", "box.yaml",
                             "other.yaml", "plan.yaml", "s.csv"})
      std::ofstream(folder_ / name) << "";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Experiment read(const std::string& text, const std::vector<std::string>& settings = {}) {
    std::ofstream(folder_ / "small.yaml") << text;
    const ExperimentRules rules{.families = {"gpipe", "1f1b", "looped"},
                                .orders = {"captured", "depth_first"},
                                .devices = [](const CaseConfig&) { return std::size_t{4}; },
                                .ranks_and_microbatches =
                                    [](const PlanSettings&) {
                                      return std::pair{2, 6};
                                    },
                                .order_of_plan = [](const PlanSettings&) { return "depth_first"; },
                                .training_of_plan =
                                    [](const PlanSettings&) {
                                      return Training{Precision::Tf32, Optimizer::Sgd, 24};
                                    },
                                .device_kinds =
                                    [](const CaseConfig&) {
                                      return std::vector<std::string>{"fast", "slow"};
                                    }};
    return read_experiment(folder_ / "small.yaml", settings, rules);
  }

  /// The message of the error that reading gives, without the folder.
  std::string error(const std::string& text, const std::vector<std::string>& settings = {}) {
    try {
      read(text, settings);
    } catch (const ConfigError& error) {
      std::string message = error.what();
      const std::string prefix = folder_.string() + "/";
      for (std::size_t at; (at = message.find(prefix)) != std::string::npos;)
        message.erase(at, prefix.size());
      return message;
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

const std::string kSmallest = "version: 1\nmodel: layers.csv\ncluster: box.yaml\n";

std::vector<std::string> names(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const CaseConfig& config : experiment.cases) names.push_back(config.name);
  return names;
}

TEST_F(ExperimentConfig, AListOfOneKeysValuesBelongsToTheCases) {
  const std::string text = "version: 1\nmodel: layers.csv\ncluster: box.yaml\n";
  EXPECT_MESSAGE(error(text + "training: {precision: [fp32, tf32]}\n"));
  EXPECT_MESSAGE(error("version: 1\nmodel: layers.csv\ncluster: [box.yaml, other.yaml]\n"));
  EXPECT_EQ(read(text + "cases: {training.precision: [fp32, tf32]}\n").cases.size(), 2u);
}

TEST_F(ExperimentConfig, NeedsOnlyModelAndClusterTheRestHasDefaults) {
  const Experiment experiment = read(kSmallest);
  EXPECT_EQ(experiment.name, "small");
  ASSERT_EQ(experiment.cases.size(), 1u);
  EXPECT_EQ(resolved_text(experiment.cases[0]),
            "version: 1\n"
            "model: {file: \"layers.csv\", format: table}\n"
            "cluster: \"box.yaml\"\n"
            "training: {precision: fp32, optimizer: adam}\n"
            "cases: {devices: [4], microbatches: [8]}\n"
            "plan: {families: [all], stages_per_rank: [1, 2, 3], search: planner, iterations: "
            "default, cuts: "
            "search, recompute: if_needed}\n"
            "baselines: [gpipe, 1f1b, interleaved_1f1b]\n"
            "simulation: {queues: pair, links: shared, launch_overhead: 5000 ns}\n"
            "engines: [estimate, simulate]\n"
            "select_by: simulate\n");
}

TEST_F(ExperimentConfig, WhatIsSimulatedChoosesUnlessTheConfigSaysOtherwise) {
  const auto chosen_by = [&](const std::string& more) {
    return pfeife::chosen_by(read(kSmallest + more).cases[0]);
  };
  EXPECT_EQ(chosen_by(""), SelectBy::Simulate);
  EXPECT_EQ(chosen_by("select_by: estimate\n"), SelectBy::Estimate);
  EXPECT_EQ(chosen_by("engines: estimate\n"), SelectBy::Estimate) << "nothing is simulated";
  EXPECT_EQ(chosen_by("plan: {search: reference}\n"), SelectBy::Estimate) << "it has its own way";
}

TEST_F(ExperimentConfig, TheResolvedTextReadsBackAsTheSameCase) {
  const Experiment experiment =
      read(kSmallest +
           "skips: skips.csv\n"
           "training: {precision: tf32, optimizer: sgd, microbatch_size: 24}\n"
           "cases: {devices: [2], microbatches: [6]}\n"
           "plan: {families: [looped, 1f1b], stages_per_rank: [3, 1], iterations: 7, reserve: 2 "
           "GiB, cuts: "
           "[1, 4], recompute: choose, devices: [1, 0]}\n"
           "baselines: []\n"
           "simulation: {queues: rank, links: delay, launch_overhead: 1.5 us, jitter: {cv: 0.02, "
           "drift: 0.01, repetitions: 10, seed: 3}}\n"
           "engines: [simulate]\n"
           "select_by: p95\n");
  const std::string text = resolved_text(experiment.cases[0]);
  EXPECT_EQ(text,
            "version: 1\n"
            "model: {file: \"layers.csv\", format: table}\n"
            "skips: \"skips.csv\"\n"
            "cluster: \"box.yaml\"\n"
            "training: {precision: tf32, optimizer: sgd, microbatch_size: 24}\n"
            "cases: {devices: [2], microbatches: [6]}\n"
            "plan: {families: [looped, 1f1b], stages_per_rank: [1, 3], search: planner, "
            "iterations: 7, cuts: "
            "[1, 4], recompute: choose, reserve: 2147483648 B, devices: [1, 0]}\n"
            "baselines: []\n"
            "simulation: {queues: rank, links: delay, launch_overhead: 1500 ns, jitter: {cv: 0.02, "
            "drift: 0.01, repetitions: 10, seed: 3}}\n"
            "engines: [estimate, simulate]\n"
            "select_by: p95\n");
  EXPECT_EQ(resolved_text(read(text).cases[0]), text);
}

TEST_F(ExperimentConfig, EverySourceOfAPlanIsResolvedToItself) {
  const auto resolved = [&](const std::string& plan) {
    const std::string config = kSmallest + "baselines: []\nplan: " + plan + "\n";
    const std::string text = resolved_text(read(config).cases[0]);
    EXPECT_EQ(resolved_text(read(text).cases[0]), text) << plan;
    const std::size_t from = text.find("plan: ") + 6;
    return text.substr(from, text.find('\n', from) - from);
  };
  for (const std::string plan :
       {"{file: \"plan.yaml\", reserve: 1024 B}",
        "{schedule: \"s.csv\", cuts: [3], reserve: 1024 B, devices: [3, 1]}",
        "{schedule: \"s.csv\", cuts: each_layer}", "{stages_per_rank: [1, 2], search: reference}",
        "{families: [certified], stages_per_rank: [2], search: planner, iterations: default, cuts: "
        "search, "
        "recompute: full, devices: search}"})
    EXPECT_EQ(resolved(plan), plan);
  EXPECT_THAT(resolved("{families: all}"), ::testing::StartsWith("{families: [all], "));
}

TEST_F(ExperimentConfig, OperatorsHaveFormulas) {
  const std::string begin = "version: 1\nmodel: model.pt2\ncluster: box.yaml\noperators:\n";
  const Experiment read_one =
      read(begin + "  my::op: {flops: \"2*m*n*k\"}\n  my::norm: {bytes: in0 + out0}\n");
  EXPECT_THAT(read_one.cases[0].model.operators,
              ElementsAre(OperatorCost{"my::op", "2*m*n*k", "io"},
                          OperatorCost{"my::norm", "0", "in0 + out0"}));
  EXPECT_THAT(resolved_text(read_one.cases[0]),
              HasSubstr("operators: {\"my::op\": {flops: \"2*m*n*k\", bytes: \"io\"}, "));
  EXPECT_MESSAGE(error(begin + "  my::op: {flops: 2*rows}\n"));
  EXPECT_MESSAGE(error(begin + "  op: {}\n"));
  EXPECT_MESSAGE(error(begin + "  my::op: {flop: 1}\n"));
  EXPECT_MESSAGE(
      error("version: 1\nmodel: layers.csv\ncluster: box.yaml\noperators: {my::op: {}}\n"));
}

TEST_F(ExperimentConfig, CasesAreTheProductOfAllKeysTheLastFastest) {
  const Experiment experiment =
      read(kSmallest + "cases: {devices: [2, 4], training.precision: [fp32, tf32]}\n");
  EXPECT_THAT(names(experiment), ElementsAre("devices=2,training.precision=fp32,microbatches=8",
                                             "devices=2,training.precision=tf32,microbatches=8",
                                             "devices=4,training.precision=fp32,microbatches=8",
                                             "devices=4,training.precision=tf32,microbatches=8"));
  EXPECT_EQ(experiment.cases[2].devices, 4u);
  EXPECT_EQ(experiment.cases[1].training.precision, Precision::Tf32);
}

TEST_F(ExperimentConfig, SettingsReplaceValues) {
  const Experiment experiment =
      read(kSmallest + "cases: {devices: [2, 4], microbatches: [8]}\n",
           {"cases.devices=1", "training.optimizer=momentum", "cluster=other.yaml"});
  ASSERT_THAT(names(experiment), ElementsAre("devices=1,microbatches=8"));
  EXPECT_EQ(experiment.cases[0].training.optimizer, Optimizer::Momentum);
  EXPECT_EQ(experiment.cases[0].file_names.at("cluster"), "other.yaml");
}

TEST_F(ExperimentConfig, OptimizersAreNamedOrSayTheirBytes) {
  const auto optimizer = [&](const std::string& text) {
    return read(kSmallest + "training: {optimizer: " + text + "}\n").cases[0].training.optimizer;
  };
  for (const Optimizer& known : known_optimizers())
    EXPECT_EQ(optimizer(to_string(known)), known) << to_string(known);
  EXPECT_EQ(optimizer("{state_bytes: 1.5, traffic_bytes: 15}"), Optimizer(Optimizer::Own, 1.5, 15));
  EXPECT_EQ(optimizer("{state_bytes: 6}"), Optimizer(Optimizer::Own, 6, 0));
  EXPECT_THROW(optimizer("{traffic_bytes: 6}"), ConfigError);
  EXPECT_EQ(optimizer(to_string(Optimizer(Optimizer::Own, 1.5, 15))),
            Optimizer(Optimizer::Own, 1.5, 15));
}

// The words are PyTorch's; so are the refusals, but for the last two.
TEST_F(ExperimentConfig, TheAllocatorIsSetAsPyTorchSpellsIt) {
  const auto allocator = [&](const std::string& text) {
    return read(kSmallest + "plan: {allocator: \"" + text + "\"}\n").cases[0].plan.allocator;
  };
  EXPECT_EQ(read(kSmallest).cases[0].plan.allocator, AllocatorSettings{});
  EXPECT_EQ(allocator("none"), std::nullopt);
  EXPECT_EQ(allocator("expandable_segments:True"), AllocatorSettings{.expandable_segments = true});
  EXPECT_EQ(allocator("max_split_size_mb:64,roundup_power2_divisions:4"),
            (AllocatorSettings{.max_split_size = 64 * kMiB, .roundup_power2_divisions = 4}));
  for (const char* wrong :
       {"expandable_segments", "expandable_segments:true", "max_split_size_mb:20",
        "roundup_power2_divisions:3", "expandable_segments:True,max_split_size_mb:64",
        "garbage_collection_threshold:0.8"})
    EXPECT_THROW(allocator(wrong), ConfigError) << wrong;
}

TEST_F(ExperimentConfig, PathsAreRelativeToTheConfigAndKeptAsWritten) {
  const Experiment experiment = read(kSmallest);
  EXPECT_EQ(experiment.cases[0].file_names.at("model"), "layers.csv");
  EXPECT_EQ(experiment.cases[0].model.file, folder_ / "layers.csv");
}

TEST_F(ExperimentConfig, AGivenPlanOrScheduleSaysHowManyDevicesAndMicrobatches) {
  const CaseConfig plan = read(kSmallest + "plan: {file: plan.yaml}\n").cases[0];
  EXPECT_EQ(plan.devices, 2u);
  EXPECT_EQ(plan.microbatches, 6u);
  const CaseConfig schedule =
      read(kSmallest + "plan: {schedule: s.csv, cuts: each_layer}\n").cases[0];
  EXPECT_EQ(schedule.plan.schedule, folder_ / "s.csv");
  EXPECT_EQ(schedule.plan.cuts, PlanSettings::Cuts::EachLayer);
  EXPECT_EQ(error(kSmallest + "cases: {devices: 3}\nplan: {file: plan.yaml}\n"),
            "small.yaml:4:18: cases.devices: \"plan.yaml\" is made for 2 devices; leave this out");
  EXPECT_EQ(error(kSmallest + "cases: {microbatches: 3}\nplan: {file: plan.yaml}\n"),
            "small.yaml:4:23: cases.microbatches: \"plan.yaml\" is made for 6 microbatches; leave "
            "this out");
  EXPECT_EQ(read(kSmallest + "cases: {devices: 2, microbatches: 6}\nplan: {file: plan.yaml}\n")
                .cases[0]
                .microbatches,
            6u);
}

TEST_F(ExperimentConfig, PublishedProfilesNameTheirFormat) {
  const std::string text = "version: 1\ncluster: box.yaml\nmodel: ";
  EXPECT_EQ(read(text + "{file: graph.txt, format: pipedream}\n").cases[0].model.format,
            ModelFormat::PipeDream);
  EXPECT_EQ(error(text + "graph.txt\n"),
            "small.yaml:3:8: model: the format of \"graph.txt\" does not follow from its name; "
            "write {file: graph.txt, format: ...} with pt2, table, pipedream or piper");
}

TEST_F(ExperimentConfig, AMisspeltMeasureIsNoMissingFile) {
  EXPECT_EQ(error("version: 1\nmodel: model.pt2\ncluster: box.yaml\nprofile: mesure\n"),
            "small.yaml:4:10: profile: there is no file \"mesure\"; did you mean measure?");
}

TEST_F(ExperimentConfig, AMissingVersionIsALineToAdd) {
  EXPECT_EQ(error("model: model.pt2\ncluster: box.yaml\n"),
            "small.yaml:1:1: the key \"version\" is missing; add the line \"version: 1\"");
}

TEST_F(ExperimentConfig, EachKindOfMistakeHasOneMessageWithItsPlaceAndARemedy) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"trainng: {}\n", "small.yaml:4:1: unknown key \"trainng\"; did you mean \"training\"?"},
      {"devices: [2, 4]\n",
       "small.yaml:4:1: \"devices\" stands below \"cases\": cases: {devices: ...}"},
      {"recompute: full\n", "small.yaml:4:1: \"recompute\" stands below \"plan\""},
      {"plan: {queues: edge}\n",
       "small.yaml:4:8: plan: \"queues\" stands below \"simulation\": simulation: {queues: ...}"},
      {"simulation: {select_by: p95}\n",
       "small.yaml:4:14: simulation: \"select_by\" stands at the top of the file, not below "
       "\"simulation\"; move it there"},
      {"plan: {loop_batch: 4}\n",
       "small.yaml:4:8: plan: \"loop_batch\" stands below \"baselines\": baselines: [{loop_batch: "
       "...}]"},
      {"training: {precison: tf32}\n", "small.yaml:4:12: training: unknown key \"precison\""},
      {"training: {precision: tf23}\n", "small.yaml:4:23: training.precision:"},
      {"training: {microbatch_size: many}\n", "small.yaml:4:29: training.microbatch_size:"},
      {"simulation: {launch_overhead: 5}\n", "small.yaml:4:31: simulation.launch_overhead:"},
      {"plan: {reserve: 2}\n", "small.yaml:4:17: plan.reserve:"},
      {"plan: {families: [gpipe, gpipe]}\n", "small.yaml:4:26: plan.families[1]: \"gpipe\" is"},
      {"plan: {families: [all, gpipe]}\n", "small.yaml:4:18: plan.families: \"all\" and"},
      {"plan: {cuts: [3, 3]}\n", "small.yaml:4:18: plan.cuts[1]: cuts must increase"},
      {"plan: {search: reference, families: [1f1b]}\n",
       "small.yaml:4:37: plan.families: reference mode has its own schedules, cuts and effort"},
      {"plan: {schedule: s.csv, cuts: search}\n", "small.yaml:4:31: plan.cuts: a given schedule"},
      {"plan: {file: plam.yaml}\n",
       "small.yaml:4:14: plan.file: there is no file \"plam.yaml\" (paths are relative to the "
       "config's folder); did you mean \"plan.yaml\"?"},
      {"cases: {devices: [5]}\n",
       "small.yaml:4:19: the cluster \"box.yaml\" has 4 devices, asked for 5"},
      {"cases: {devices: [2, 2]}\n", "small.yaml:4:8: cases: two cases have the name"},
      {"cases: {devices: []}\n", "small.yaml:4:18: cases.devices: the list is empty"},
      {"cases: {device: [2]}\n", "small.yaml:4:9: cases: \"device\" is neither devices,"},
      {"cases: {training.precison: [tf32]}\n",
       "small.yaml:4:29: cases.training.precison: training: unknown key \"precison\""},
      {"cases: {version: [1]}\n",
       "small.yaml:4:9: cases: \"version\" is one for all cases; write it at the top"},
      {"plan: {devices: [0]}\ncases: {devices: 2}\n", "small.yaml:4:17: plan.devices names 1"},
      {"plan: {devices: [0, 1, 0]}\n",
       "small.yaml:4:24: plan.devices[2]: device 0 runs another rank already"},
      {"engines: [estimate, measure]\n",
       "small.yaml:4:21: \"measure\" runs the model, and a table model has only times"},
      {"engines: [estimate]\nselect_by: simulate\n", "small.yaml:5:12: select_by: choosing by"},
      {"select_by: p95\n", "small.yaml:4:12: select_by: p95 needs simulation.jitter"},
      {"simulation: {jitter: {cv: 0.02, drift: 1.5}}\n",
       "small.yaml:4:40: simulation.jitter.drift: "},
      {"simulation: {jitter: {cv: 0.02, drfit: 0.1}}\n",
       "small.yaml:4:33: simulation.jitter: unknown key \"drfit\"; did you mean \"drift\"?"},
      {"baselines: [gpip]\n", "small.yaml:4:13: baselines[0]:"},
      {"skips: skips.cvs\n", "small.yaml:4:8: skips: there is no file \"skips.cvs\""},
  };
  for (const auto& [text, message] : mistakes)
    EXPECT_THAT(error(kSmallest + text), ::testing::StartsWith(message)) << text;
  EXPECT_MESSAGE(error("version: 2\nmodel: layers.csv\ncluster: box.yaml\n"));
  EXPECT_MESSAGE(error("version: 1\ncluster: box.yaml\n"));
  EXPECT_MESSAGE(error("version: 1\nmodel: model.pt2\nskips: skips.csv\ncluster: box.yaml\n"));
  EXPECT_MESSAGE(error(kSmallest, {"training.precision=tf23"}));
}

TEST_F(ExperimentConfig, MeasuredInputsAreMadeLater) {
  const std::string text = "version: 1\nmodel: model.pt2\ncluster: measure\n";
  const CaseConfig config =
      read(text + "profile: measure\nengines: [measure]\nmeasurement: {steps: 5}\n").cases[0];
  EXPECT_TRUE(config.cluster_measured && config.profile_measured && config.measure);
  EXPECT_EQ(config.measurement.steps, 5u);
  EXPECT_THAT(resolved_text(config),
              HasSubstr("engines: [estimate, measure]\n"
                        "measurement: {steps: 5, rounds: 15, interval: 0.02}\n"));
  EXPECT_MESSAGE(error(text));
  EXPECT_MESSAGE(
      error(text + "profile: measure\nengines: [measure]\ntraining: {precision: tf32}\n"));
  EXPECT_MESSAGE(error(text + "profile: measure\nmeasurement: {steps: 2}\n"));
  EXPECT_MESSAGE(error(text + "profile: measure\nmeasurement: {rounds: 0}\n"));
  EXPECT_MESSAGE(error(text + "profile: measure\nmeasurement: {interval: 2 %}\n"));
}

// Two of global batch, microbatches and their size say the third.
TEST_F(ExperimentConfig, AGlobalBatchIsMicrobatchesTimesTheirSize) {
  const std::string model = "version: 1\nmodel: model.pt2\ncluster: box.yaml\n";
  const CaseConfig by_size =
      read(model + "training: {global_batch: 48, microbatch_size: 6}\n").cases[0];
  EXPECT_EQ(by_size.microbatches, 8u);
  EXPECT_EQ(by_size.name, "devices=4,microbatches=8");
  const Experiment by_count =
      read(model + "training: {global_batch: 48}\ncases: {microbatches: [4, 8]}\n");
  EXPECT_EQ(by_count.cases[0].training.microbatch_size, 12);
  EXPECT_EQ(by_count.cases[1].training.microbatch_size, 6);
  const CaseConfig open = read(model + "training: {global_batch: 48}\n").cases[0];
  EXPECT_TRUE(open.microbatch_size_open());
  EXPECT_EQ(open.name, "devices=4,global_batch=48");
  EXPECT_THAT(resolved_text(open), HasSubstr("optimizer: adam, global_batch: 48}\n"
                                             "cases: {devices: [4]}\n"));
  EXPECT_EQ(read(model + "cases: {training.global_batch: [8, 16]}\n").cases[1].name,
            "training.global_batch=16,devices=4");

  EXPECT_MESSAGE(error(model + "training: {global_batch: 48, microbatch_size: 7}\n"));
  EXPECT_MESSAGE(error(model + "training: {global_batch: 48}\ncases: {microbatches: 9}\n"));
  EXPECT_MESSAGE(error(model + "training: {global_batch: 48, microbatch_size: 6}\n"
                               "cases: {microbatches: 4}\n"));
  EXPECT_MESSAGE(error(kSmallest + "training: {global_batch: 48}\n"));
  EXPECT_MESSAGE(error(kSmallest + "training: {global_batch: 48}\nplan: {file: plan.yaml}\n"));
}

TEST_F(ExperimentConfig, OrderOfTheLayersIsNamedOrSearchedOrThePlans) {
  const std::string model = "version: 1\nmodel: model.pt2\ncluster: box.yaml\n";
  EXPECT_THAT(resolved_text(read(model + "plan: {order: search}\n").cases[0]),
              HasSubstr(", order: search}\n"));
  EXPECT_EQ(read(model + "plan: {file: plan.yaml}\n").cases[0].plan.order, "depth_first");
  EXPECT_MESSAGE(error(model + "plan: {order: depth}\n"));
  EXPECT_MESSAGE(error(kSmallest + "plan: {order: search}\n"));
}

TEST_F(ExperimentConfig, BaselinesMayRecomputeToo) {
  const CaseConfig config =
      read(
          kSmallest +
          "baselines: [1f1b, {family: 1f1b, recompute: blocks}, {family: gpipe, recompute: full}]\n"
          "plan: {recompute: attention}\n")
          .cases.at(0);
  ASSERT_EQ(config.baselines.size(), 3u);
  EXPECT_EQ(config.baselines[0].name(), "1f1b");
  EXPECT_EQ(config.baselines[1].name(), "1f1b_blocks");
  EXPECT_EQ(config.baselines[2].name(), "gpipe_full");
  EXPECT_EQ(config.plan.recompute, Recompute::Attention);
  EXPECT_THAT(resolved_text(config),
              ::testing::AllOf(
                  HasSubstr("baselines: [1f1b, {family: 1f1b, recompute: blocks}, {family: gpipe, "
                            "recompute: full}]\n"),
                  HasSubstr("recompute: attention")));
  EXPECT_MESSAGE(error(kSmallest + "baselines: [{family: 1f1b, recompute: if_needed}]\n"));
  EXPECT_MESSAGE(error(kSmallest + "baselines: [1f1b, {family: 1f1b}]\n"));
}

TEST_F(ExperimentConfig, MessagesAreReceivedLateUnlessTheConfigSaysOtherwise) {
  const CaseConfig usual = read(kSmallest).cases.at(0);
  EXPECT_EQ(usual.plan.receives, Receives::AtNeed);
  EXPECT_EQ(resolved_text(usual).find("receives"), std::string::npos);
  const CaseConfig ready = read(kSmallest + "plan: {receives: as_ready}\n").cases.at(0);
  EXPECT_EQ(ready.plan.receives, Receives::AsReady);
  EXPECT_THAT(resolved_text(ready), HasSubstr(", receives: as_ready"));
}

TEST_F(ExperimentConfig, PlansMayOffloadWhatTrainingSaves) {
  const CaseConfig config = read(kSmallest + "plan: {offload: auto}\n").cases.at(0);
  EXPECT_TRUE(config.plan.offload);
  EXPECT_THAT(resolved_text(config), HasSubstr("offload: auto"));
  const CaseConfig usual = read(kSmallest).cases.at(0);
  EXPECT_FALSE(usual.plan.offload);
  EXPECT_EQ(resolved_text(usual).find("offload"), std::string::npos);
  EXPECT_TRUE(read(kSmallest + "plan: {offload: auto, slices: [2]}\n").cases.at(0).plan.offload);
  EXPECT_THAT(error(kSmallest + "plan: {offload: auto, search: reference}\n"),
              HasSubstr("leave this or plan.search out"));
  EXPECT_THAT(error(kSmallest + "plan: {offload: maybe}\n"), HasSubstr("none"));
}

TEST_F(ExperimentConfig, StagesMayBePlacedWhereOrdersAreBuilt) {
  const CaseConfig config = read(kSmallest + "plan: {placement: search}\n").cases.at(0);
  EXPECT_TRUE(config.plan.search_placement);
  EXPECT_THAT(resolved_text(config), HasSubstr("placement: search"));
  const CaseConfig usual = read(kSmallest).cases.at(0);
  EXPECT_FALSE(usual.plan.search_placement);
  EXPECT_EQ(resolved_text(usual).find("placement"), std::string::npos);
  EXPECT_THAT(error(kSmallest + "plan: {placement: search, families: [1f1b]}\n"),
              HasSubstr("add zb_greedy to plan.families"));
  EXPECT_THAT(error(kSmallest + "plan: {placement: search, search: reference}\n"),
              HasSubstr("leave this or plan.search out"));
  EXPECT_THAT(error(kSmallest + "training: {mode: forward}\nplan: {placement: search}\n"),
              HasSubstr("orders are built for training steps"));
  EXPECT_THAT(error(kSmallest + "plan: {placement: any}\n"), HasSubstr("by_family"));
}

TEST_F(ExperimentConfig, MicrobatchesMayDiffer) {
  const CaseConfig config = read(kSmallest +
                                 "training: {microbatch_costs: [1, 2.5, [0.5, 0.25]]}\n"
                                 "plan: {microbatch_order: search}\n")
                                .cases.at(0);
  EXPECT_EQ(config.training.microbatch_costs,
            (std::vector<MicrobatchScale>{{1, 1}, {2.5, 2.5}, {0.5, 0.25}}));
  EXPECT_EQ(config.microbatches, 3u);
  EXPECT_TRUE(config.plan.search_microbatch_order);
  EXPECT_THAT(resolved_text(config), HasSubstr("microbatch_costs: [1, 2.5, [0.5, 0.25]]"));
  EXPECT_THAT(resolved_text(config), HasSubstr("microbatch_order: search"));
  EXPECT_EQ(resolved_text(read(kSmallest).cases.at(0)).find("microbatch_"), std::string::npos);
  const auto training = [&](const std::string& text) {
    return error(kSmallest + "training: {" + text + "}\n");
  };
  EXPECT_THAT(training("microbatch_costs: 2"), HasSubstr("a factor for each microbatch"));
  EXPECT_THAT(training("microbatch_costs: [0]"), HasSubstr("small.yaml:4"));
  EXPECT_THAT(training("microbatch_costs: [[1, 2, 3]]"), HasSubstr("outside attention"));
  EXPECT_THAT(training("microbatch_costs: []"), HasSubstr("leave the key out"));
  EXPECT_THAT(error(kSmallest + "training: {microbatch_costs: [1, 2]}\ncases: {microbatches: 3}\n"),
              HasSubstr("2 microbatches are listed, and a step has 3"));
  EXPECT_THAT(error(kSmallest + "plan: {microbatch_order: search}\n"),
              HasSubstr("say what they cost"));
  EXPECT_THAT(error(kSmallest + "training: {microbatch_costs: [1, 2]}\nplan: {slices: [2]}\n"),
              HasSubstr("leave slices out"));
}

TEST_F(ExperimentConfig, DocumentsAreListsOrAFile) {
  const DocumentLengths documents{{2048}, {1024, 512, 512}};
  const auto lengths = [&](const std::string& text) {
    return read(kSmallest + "training: {lengths: " + text + "}\n").cases.at(0).training.lengths;
  };
  const auto refused = [&](const std::string& text) {
    return error(kSmallest + "training: {lengths: " + text + "}\n");
  };
  EXPECT_EQ(lengths("[[2048], [1024, 512, 512]]"), documents);
  std::ofstream(folder_ / "batch.csv") << "microbatch,length\n0,2048\n1,1024\n1,512\n1,512\n";
  EXPECT_EQ(lengths("batch.csv"), documents);
  EXPECT_THAT(refused("none.csv"), HasSubstr("there is no file"));
  EXPECT_THAT(refused("[[2048], []]"), HasSubstr("one document at least"));
  EXPECT_THAT(refused("[[0]]"), HasSubstr("small.yaml:4"));
  std::ofstream(folder_ / "bad.csv") << "microbatch,length\n0,2048\n2,1024\n";
  EXPECT_THAT(refused("bad.csv"), HasSubstr("stand in their order"));
  std::ofstream(folder_ / "half.csv") << "microbatch,length\n0,20.5\n";
  EXPECT_THAT(refused("half.csv"), HasSubstr("must be a whole number"));
  std::ofstream(folder_ / "many.csv") << "batch,microbatch,length\n0,0,2048\n";
  EXPECT_THAT(refused("many.csv"), HasSubstr("run pfeife-exp batches CONFIG --lengths many.csv"));
  EXPECT_THAT(error(kSmallest + "training: {lengths: [[1]], microbatch_costs: [1]}\n"),
              HasSubstr("leave one of the two out"));
}

TEST_F(ExperimentConfig, ARankMayBeSlow) {
  const CaseConfig config =
      read(kSmallest + "what_if: {slow: {rank: 3, factor: 1.2}}\n").cases.at(0);
  EXPECT_EQ(config.what_if.slow, (SlowRank{.rank = 3, .factor = 1.2}));
  EXPECT_THAT(resolved_text(config), HasSubstr("what_if: {slow: {rank: 3, factor: 1.2}}"));
  EXPECT_EQ(read(kSmallest + "what_if: {slow: {}}\n").cases.at(0).what_if.slow, SlowRank{});
  EXPECT_THAT(error(kSmallest + "what_if: {slow: {rank: 4}}\n"), HasSubstr("the last is 3"));
  EXPECT_THAT(error(kSmallest + "what_if: {fast: 1}\n"), HasSubstr("slow"));
}

TEST_F(ExperimentConfig, TheLastMicrobatchMayBeKept) {
  const std::string written =
      "baselines: [{family: gpipe, recompute: full, recompute_except_last: true}, {family: gpipe, "
      "recompute: full}]\n";
  const CaseConfig config =
      read(kSmallest + written + "plan: {recompute: choose, recompute_except_last: true}\n")
          .cases.at(0);
  EXPECT_EQ(config.baselines.at(0).name(), "gpipe_full_except_last");
  EXPECT_TRUE(config.baselines[0].recompute_except_last && config.plan.recompute_except_last);
  EXPECT_FALSE(config.baselines.at(1).recompute_except_last);
  EXPECT_THAT(resolved_text(config),
              ::testing::AllOf(HasSubstr(written),
                               HasSubstr("recompute: choose, recompute_except_last: true")));
  const std::string plan = "plan: {recompute_except_last: true}\n";  // of whatever is needed
  EXPECT_TRUE(read(kSmallest + plan).cases.at(0).plan.recompute_except_last);
  for (const char* wrong : {"plan: {recompute: none, recompute_except_last: true}\n",
                            "plan: {recompute_except_last: yes please}\n",
                            "plan: {search: reference, recompute_except_last: true}\n",
                            "baselines: [{family: 1f1b, recompute_except_last: true}]\n"})
    EXPECT_MESSAGE(error(kSmallest + wrong));
}

TEST_F(ExperimentConfig, BaselinesAreNamedAndCutAsOthersMakeThem) {
  const std::string written =
      "baselines: [{family: 1f1b, name: \"DeepSpeed\", cuts: equal_parameters, cuts_at: blocks}, "
      "{family: looped, cuts: search, stages_per_rank: 2, loop_batch: 4, prefetch: [1, 0]}, "
      "{family: gpipe, cuts: [0, 2]}, {family: gpipe, cuts: equal_layers, recompute: full}]\n";
  const CaseConfig config = read(kSmallest + written).cases.at(0);
  ASSERT_EQ(config.baselines.size(), 4u);
  EXPECT_EQ(config.baselines[0].name(), "DeepSpeed");
  EXPECT_EQ(config.baselines[1].name(), "looped_search");
  EXPECT_EQ(config.baselines[1].prefetch, (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(config.baselines[2].given_cuts, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(config.baselines[3].name(), "gpipe_equal_layers_full");
  EXPECT_THAT(resolved_text(config), HasSubstr(written)) << "what is written is read again";
  for (const char* wrong :
       {"{family: 1f1b, name: a/b}", "{family: 1f1b, name: planned}",
        "{family: 1f1b, name: case.json}", "{family: 1f1b, cuts: fair}",
        "{family: 1f1b, cuts: [2, 1]}", "{family: 1f1b, cuts: equal_layers, cuts_at: blocks}",
        "{family: 1f1b, cut: search}", "{name: mine}"})
    EXPECT_MESSAGE(error(kSmallest + "baselines: [" + wrong + "]\n"));
}

TEST_F(ExperimentConfig, ACalibrationReplacesKeysOfTheDeviceKindsThatItFits) {
  const std::string archive = "version: 1\nmodel: model.pt2\ncluster: box.yaml\n";
  const std::string written =
      "calibration: [{device_kind: \"slow\", precision: fp32, compute: 1.25, origin: \"a table\"}, "
      "{stage_overhead: 3000000 ns}]\nplan_with: published\n";
  const CaseConfig config = read(archive + written).cases.at(0);
  std::vector<std::string> replaced;
  for (const auto& [path, value] : calibrated_keys(config, {"fast", "slow"}))
    replaced.push_back(path + " " + value.text);
  EXPECT_THAT(replaced, ElementsAre("device_kinds.fast.stage_overhead 3000000 ns",
                                    "device_kinds.slow.compute_factor 1.25"));
  EXPECT_TRUE(config.cluster_set.empty());
  EXPECT_TRUE(config.plan_published);
  EXPECT_EQ(chosen_by(config), SelectBy::Estimate);
  EXPECT_EQ(
      calibration_text(config),
      "slow: compute x 1.25 (a table); 3 ms a stage execution; planned with published figures");
  EXPECT_THAT(resolved_text(config), HasSubstr("cluster: \"box.yaml\"\n" + written))
      << "what is written is read again";
  EXPECT_EQ(calibration_text(read(archive).cases.at(0)), "");
}

TEST_F(ExperimentConfig, WhatIsForTorchHasCutsBetweenBlocksAndRecomputesNothing) {
  const std::string model = "version: 1\nmodel: model.pt2\ncluster: box.yaml\n";
  const PlanSettings torch = read(model + "plan: {for: torch}\n").cases[0].plan;
  EXPECT_TRUE(torch.framework == "torch" && torch.cuts_at == PlanSettings::CutsAt::Blocks);
  EXPECT_EQ(torch.recompute, Recompute::None);
  EXPECT_THAT(resolved_text(read(model + "plan: {cuts_at: blocks}\n").cases[0]),
              HasSubstr(", cuts_at: blocks}\n"));
  EXPECT_MESSAGE(error(model + "plan: {for: torch, recompute: full}\n"));
  EXPECT_MESSAGE(error(model + "plan: {for: torch, cuts_at: layers}\n"));
  EXPECT_MESSAGE(error(model + "plan: {cuts_at: blocks, order: search}\n"));
  EXPECT_MESSAGE(error(kSmallest + "plan: {for: torch}\n"));
}

TEST_F(ExperimentConfig, WhatIsForAFrameworkIsWhatThatRuns) {
  const std::string model = "version: 1\nmodel: model.pt2\ncluster: box.yaml\n";
  const CaseConfig megatron = read(model + "plan: {for: megatron}\n").cases[0];
  EXPECT_THAT(megatron.plan.families, ElementsAre("1f1b", "interleaved_1f1b"));
  EXPECT_EQ(megatron.plan.recompute, Recompute::None);
  const std::string text =
      resolved_text(read(model + "plan: {for: deepspeed}\nbaselines: []\n").cases[0]);
  EXPECT_EQ(resolved_text(read(text).cases[0]), text);
  EXPECT_THAT(read(model + "plan: {for: torchtitan}\n").cases[0].plan.families, ElementsAre("all"));
  EXPECT_MESSAGE(error(model + "plan: {for: megatron, families: [1f1b, looped]}\n"));
  EXPECT_MESSAGE(error(model + "plan: {for: deepspeed, recompute: blocks}\n"));
  EXPECT_MESSAGE(error(model + "plan: {for: megatronn}\n"));
}

TEST_F(ExperimentConfig, WhatTrainingDoesNotSayIsThePlans) {
  const std::string model = "version: 1\nmodel: model.pt2\ncluster: box.yaml\n";
  const auto training = [&](const std::string& rest) {
    const StepSettings training = read(model + rest).cases[0].training;
    return Training{training.precision, training.optimizer, training.microbatch_size.value_or(0)};
  };
  const std::string plan = "plan: {file: plan.yaml}\n";
  EXPECT_EQ(training(plan), (Training{Precision::Tf32, Optimizer::Sgd, 24}));
  EXPECT_EQ(training(plan + "training: {precision: fp32}\n"),
            (Training{Precision::Fp32, Optimizer::Sgd, 24}));
  EXPECT_EQ(training(plan + "training: {optimizer: adamw, microbatch_size: 2}\n"),
            (Training{Precision::Tf32, Optimizer::AdamW, 2}));
  EXPECT_EQ(training(""), (Training{Precision::Fp32, Optimizer::Adam, 0}));
  EXPECT_EQ(training("plan: {schedule: s.csv, cuts: [1]}\n").microbatch_size, 0);
}

TEST_F(ExperimentConfig, DevicesOfTheRanksMayBeSearched) {
  const CaseConfig config = read(kSmallest + "plan: {devices: search}\n").cases[0];
  EXPECT_TRUE(config.plan.search_devices);
  EXPECT_THAT(resolved_text(config), HasSubstr(", devices: search}\n"));
  EXPECT_MESSAGE(error(kSmallest + "plan: {devices: find}\n"));
  EXPECT_MESSAGE(error(kSmallest + "plan: {schedule: s.csv, cuts: [1], devices: search}\n"));
}

TEST_F(ExperimentConfig, AnOldKeyIsRefusedWithItsNewName) {
  EXPECT_MESSAGE(error(kSmallest + "plan: {loops: [1, 2]}\n"));
  EXPECT_MESSAGE(error("version: 2\nnew_key: 1\n"));
}

TEST_F(ExperimentConfig, ListsAndMapsAreNamedByWhatTheySayAndKeptWithTheirKeys) {
  std::vector<std::string> names;
  std::vector<std::vector<SweptKey>> swept;
  const Experiment experiment =
      read(kSmallest +
           "cases: {devices: 4, microbatches: [8],\n"
           "  simulation.jitter: [{cv: 0.02, seed: 1}], plan.families: [[gpipe, 1f1b], all], "
           "plan.reserve: [2 GiB]}\n");
  for (const CaseConfig& config : experiment.cases) {
    names.push_back(config.name);
    swept.push_back(config.swept);
  }
  EXPECT_THAT(names, ElementsAre("devices=4,microbatches=8,simulation.jitter=cv-0.02+seed-1,"
                                 "plan.families=gpipe+1f1b,plan.reserve=2_GiB",
                                 "devices=4,microbatches=8,simulation.jitter=cv-0.02+seed-1,"
                                 "plan.families=all,plan.reserve=2_GiB"));
  ASSERT_EQ(swept.size(), 2u);
  EXPECT_THAT(swept[0], ElementsAre(SweptKey{"simulation.jitter", "{cv: 0.02, seed: 1}"},
                                    SweptKey{"plan.families", "[gpipe, 1f1b]"},
                                    SweptKey{"plan.reserve", "2 GiB"}));
  EXPECT_EQ(swept[1][1], (SweptKey{"plan.families", "all"}));
}

TEST_F(ExperimentConfig, AKeyOfTheClustersFileIsReplacedByItsPath) {
  const std::string text = kSmallest + "baselines: []\ncases: {cluster.devices_per_node: [2, 4]}\n";
  const std::vector<std::string> settings = {"cluster.links.nic.bandwidth=25 GB/s",
                                             "cluster.routes[0].latency=5 us"};
  const Experiment experiment = read(text, settings);
  ASSERT_EQ(experiment.cases.size(), 2u);
  const CaseConfig& config = experiment.cases[1];
  EXPECT_EQ(config.name, "cluster.devices_per_node=4,devices=4,microbatches=8");
  EXPECT_EQ(config.file_names.at("cluster"), "box.yaml");
  std::vector<std::string> replaced;
  for (const auto& [path, value] : config.cluster_set) replaced.push_back(path + " " + value.text);
  EXPECT_THAT(replaced, ElementsAre("links.nic.bandwidth 25 GB/s", "routes[0].latency 5 us",
                                    "devices_per_node 4"));
  EXPECT_EQ(to_string(config.cluster_set[0].second.where),
            "--set cluster.links.nic.bandwidth=25 GB/s");
  EXPECT_EQ(resolved_text(read(resolved_text(config)).cases.at(0)), resolved_text(config));
  EXPECT_NE(resolved_text(experiment.cases[0]), resolved_text(config));
}

// The file may be swept, too: what is replaced stays.
TEST_F(ExperimentConfig, WhatIsReplacedInAClusterHoldsForEveryFile) {
  const Experiment experiment = read(kSmallest + "cases: {cluster: [box.yaml, other.yaml]}\n",
                                     {"cluster.devices_per_node=2"});
  ASSERT_EQ(experiment.cases.size(), 2u);
  EXPECT_EQ(experiment.cases[1].file_names.at("cluster"), "other.yaml");
  for (const CaseConfig& config : experiment.cases)
    EXPECT_EQ(config.cluster_set.size(), 1u) << config.name;
}

TEST_F(ExperimentConfig, CasesWhoseNamesWouldBeOneStayApart) {
  std::filesystem::create_directories(folder_ / "a");
  std::filesystem::create_directories(folder_ / "b");
  for (const char* name : {"a/m.pt2", "b/m.pt2"}) std::ofstream(folder_ / name) << "";
  const std::string text = "version: 1\nmodel: model.pt2\ncluster: box.yaml\ncases: {model: ";
  const Experiment two = read(text + "[a/m.pt2, b/m.pt2]}\n");
  EXPECT_EQ(two.cases[0].name, "model=m,devices=4,microbatches=8");
  EXPECT_THAT(two.cases[1].name,
              ::testing::MatchesRegex("model=m,devices=4,microbatches=8-[0-9a-f]+"));
  EXPECT_MESSAGE(error(text + "[a/m.pt2, b/m.pt2, b/m.pt2]}\n"));
}

TEST(CaseName, HasNothingThatAFolderMustNotHave) {
  EXPECT_EQ(case_name({{"cluster", "../clusters/a b.yaml"}, {"devices", "4"}}),
            "cluster=a_b,devices=4");
  EXPECT_EQ(case_name({{"plan.families", "..\\x\n"}}), "plan.families=.._x_");
  EXPECT_EQ(case_name({{"key", "09AZaz._+=,-"}}), "key=09AZaz._+=,-");
  EXPECT_EQ(folder_name(".hidden"), "_hidden");
  EXPECT_EQ(case_name({{"links.nic.bandwidth", "25 GB/s"}}), "links.nic.bandwidth=25_GB_s");
  const std::string longest(300, 'x');
  EXPECT_EQ(case_name({{"a", longest}}).size(), 120u);
  EXPECT_NE(case_name({{"a", longest}}), case_name({{"a", longest + "x"}}));
}

// The pages of configs/reference say what the lists of fields say. To write their tables anew:
// PFEIFE_WRITE_REFERENCE=1 build/release/tests/test_io --gtest_filter='Reference.*'

std::filesystem::path reference_folder() {
  return std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs" / "reference";
}

std::map<std::filesystem::path, std::string> reference_pages() {
  std::map<std::filesystem::path, std::string> pages;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(reference_folder().parent_path())) {
    if (entry.path().extension() != ".md") continue;
    std::ifstream in(entry.path());
    pages[entry.path()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return pages;
}

TEST(Reference, PagesHaveTheTablesOfTheLists) {
  const auto tables = reference_tables();
  std::string all;
  for (const auto& [file, page] : reference_pages()) {
    const std::string now = with_tables(page, tables);
    all += now;
    if (now == page) continue;
    if (std::getenv("PFEIFE_WRITE_REFERENCE"))
      std::ofstream(file) << now;
    else
      ADD_FAILURE() << file.filename()
                    << " has other tables than the lists of planner/io/experiment; write "
                    << "them anew: PFEIFE_WRITE_REFERENCE=1 build/release/tests/test_io "
                       "--gtest_filter='Reference.*'";
  }
  for (const auto& [name, table] : tables)
    EXPECT_THAT(all, HasSubstr("<!-- table " + name + " -->")) << "on no page";
}

TEST(Reference, APageIsReadInFiveMinutes) {
  for (const auto& [file, page] : reference_pages()) {
    if (file.parent_path() != reference_folder()) continue;
    std::istringstream in(page);
    const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    EXPECT_LE(words.size(), 1150u) << file.filename() << ": make it two pages";
  }
}

TEST(Reference, EveryColumnOfResultsIsDescribed) {
  const std::string page = reference_pages().at(reference_folder() / "columns.md");
  ResultRow row;
  each_field(row, [&](const std::string& name, const auto&) {
    EXPECT_THAT(page, HasSubstr("`" + name + "`"));
  });
}

/// The default of a table is what a config without the key means: what is shown can be written.
TEST(Reference, ARowHasKeyValuesDefaultAndMeaning) {
  const std::vector<FieldRow> rows = training_fields().rows("training.");
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(table_text({rows[1]}),
            "| key | values | default | meaning |\n|---|---|---|---|\n"
            "| `training.optimizer` | `sgd`, `momentum`, `momentum_bf16`, `adam`, `adamw`, "
            "`adam_8bit`, `adafactor`, `lion`, `muon`, or `{state_bytes: 1.5, traffic_bytes: 15}` "
            "| `adam` | its state is part of the memory, its time part of the step: "
            "[optimizers](optimizers.md) |\n");
  for (const FieldRow& row : experiment_keys().rows("")) {
    EXPECT_FALSE(row.values.empty() || row.usual.empty() || row.about.empty()) << row.key;
  }
}

TEST(Reference, ATableOfAPageMustBeThereAndEnd) {
  const std::vector<std::pair<std::string, std::string>> tables{{"a", "| a |\n"}};
  EXPECT_EQ(with_tables("x\n<!-- table a -->\nold\n<!-- end -->\ny\n", tables),
            "x\n<!-- table a -->\n| a |\n<!-- end -->\ny\n");
  EXPECT_THROW(with_tables("<!-- table b -->\n<!-- end -->\n", tables), ConfigError);
  EXPECT_THROW(with_tables("<!-- table a -->\n", tables), ConfigError);
}

}  // namespace
}  // namespace pfeife
