// Data parallelism: replicas of pipelines have the gradients, the steps and the checkpoints of one
// device.
#include <gmock/gmock.h>
#include <unistd.h>

#include "runtime/execute/check.h"
#include "runtime/train/training.h"
#include "tests/runtime/processes.h"
#include "tests/runtime/same.h"
#include "tests/runtime/split_batch.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using namespace testing;
using ::testing::HasSubstr;

ScheduleSpec point(const std::string& family, std::size_t ranks, std::size_t microbatches,
                   std::size_t stages_per_rank) {
  return {family, ranks, microbatches, stages_per_rank, {}, {}};
}

/// Different placements, backward in one part and in two, several stages a rank.
std::vector<ScheduleSpec> families_of_two() {
  return {point("gpipe", 2, 2, 1), point("1f1b", 2, 2, 1), point("interleaved_1f1b", 2, 2, 2),
          point("zb_h1", 2, 2, 1), point("zbv", 2, 2, 2),  point("looped_bfs", 2, 2, 3),
          point("1f1b", 1, 2, 1)};
}

struct Ran {
  std::vector<Outcome> replicas;
  std::vector<double> mean_losses;           ///< [rank] of the last step, as told everywhere
  std::size_t state = 0, largest_state = 0;  ///< elements of optimizer state: all, and on a rank
};

/// Steps on all ranks as threads; microbatches are those of one pipeline for the whole batch.
Ran run_replicas(const Pipeline& pipeline, const WeightSource& source, const RunOptions& options,
                 bool losses = false) {
  Ran ran;
  ran.replicas.resize(pipeline.replicas.count);
  for (Outcome& outcome : ran.replicas) outcome.records.resize(pipeline.ranks());
  ran.mean_losses.resize(pipeline.all_ranks());
  std::mutex mutex;
  RandomTurns turns;
  Pipeline batch;
  batch.graph = pipeline.graph;
  batch.microbatches = pipeline.microbatches * pipeline.replicas.count;
  run_ranks(pipeline.all_ranks(), at::kCPU, [&](RankId number, Transport& transport) {
    RankPipeline own(pipeline, number, source, options.rank, turns, transport);
    std::vector<TaskRecord> records;
    for (int step = 0; step < options.steps; ++step)
      records = own.step(
          share_of_replica(inputs_of(batch, static_cast<std::uint64_t>(step), options.rank.placing),
                           own.replica(), pipeline.microbatches));
    const double mean = losses ? mean_loss_everywhere(own, number, transport, 0) : 0;
    const std::lock_guard lock(mutex);
    Outcome& outcome = ran.replicas[own.replica()];
    outcome.records[pipeline.pipeline_rank_of(number).index()] = records;
    collect(own, outcome);
    ran.mean_losses[number.index()] = mean;
    std::size_t state = 0;
    for (const auto& [p, tensors] : own.optimizer_state())
      for (const auto& [name, tensor] : tensors) state += static_cast<std::size_t>(tensor.numel());
    ran.state += state;
    ran.largest_state = std::max(ran.largest_state, state);
  });
  return ran;
}

Pipeline replicated(const Model& model, const ScheduleSpec& spec, const ReplicaRanks& replicas) {
  Pipeline pipeline = model.pipeline(spec);
  pipeline.replicas = replicas;
  return pipeline;
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

// Gradients of the batch's mean loss: the share of each replica adds up to that of one device.
TEST_P(EveryModel, GradientsAreThoseOfTheUnsplitModelOnAllReplicas) {
  const Model model(GetParam());
  std::map<std::size_t, Outcome> whole;
  for (const std::size_t count : {2, 3}) whole[count] = run(model.unsplit(2 * count), model.source);
  for (const ScheduleSpec& spec : families_of_two())
    for (const std::size_t count : {2, 3})
      for (const bool neighbours : {true, false}) {
        const Pipeline pipeline = replicated(model, spec, {count, neighbours, 0});
        const Ran ran = run_replicas(pipeline, model.source, {}, true);
        const Outcome& expected = whole.at(count);
        double mean = 0;
        for (const double loss : expected.losses)
          mean += loss / static_cast<double>(expected.losses.size());
        for (const double told : ran.mean_losses) EXPECT_NEAR(told, mean, 1e-12 * mean);
        for (std::size_t d = 0; d < count; ++d) {
          Outcome own = ran.replicas[d];
          for (std::size_t m = 0; m < 2; ++m)
            EXPECT_NEAR(own.losses.at(m), expected.losses.at(2 * d + m),
                        1e-12 * expected.losses[2 * d + m]);
          own.losses = expected.losses;
          own.buffers = expected.buffers;  // statistics of a share: compared below
          expect_same(pipeline, own, expected, 1e-12,
                      name_of(spec) + stream_all(" replica ", d, " of ", count));
          EXPECT_EQ(largest_difference(own.gradients, ran.replicas[0].gradients), 0);
          EXPECT_EQ(largest_difference(ran.replicas[d].buffers, ran.replicas[0].buffers), 0);
        }
      }
}

// Accumulation: two steps without an update add up, on every replica.
TEST_P(EveryModel, StepsWithoutUpdateAddUp) {
  const Model model(GetParam());
  RunOptions twice;
  twice.steps = 2;
  const Outcome whole = run(model.unsplit(4), model.source, twice);
  for (const ScheduleSpec& spec : families_of_two()) {
    const Ran ran = run_replicas(replicated(model, spec, {2, true, 0}), model.source, twice);
    for (const Outcome& replica : ran.replicas)
      EXPECT_LE(largest_difference(replica.gradients, whole.gradients), 1e-12) << name_of(spec);
  }
}

// Parameters after four steps, with the state whole and divided, and with clipping. A bias in front
// of a batch norm has gradient zero; of its rounding, 1e-16, AdamW makes 1e-3 * 1e-16 / 1e-8 a
// step.
TEST_P(EveryModel, OptimizerStepsAreThoseOfTheUnsplitModelAlsoWithZeRO1) {
  const Model model(GetParam());
  for (const Optimizer kind : {Optimizer::Momentum, Optimizer::AdamW})
    for (const double clip : {0.0, 0.05}) {
      RunOptions options;
      options.steps = 4;
      options.rank.update = true;
      options.rank.optimizer = {.kind = kind, .weight_decay = 0.01, .clip_norm = clip};
      const Outcome whole = run(model.unsplit(4), model.source, options);
      for (const ScheduleSpec& spec : families_of_two())
        for (const int zero : {0, 1}) {
          Pipeline pipeline = replicated(model, spec, {2, zero == 0, zero});
          if (clip > 0) add_norm_reduction(pipeline);
          const Ran ran = run_replicas(pipeline, model.source, options);
          for (const Outcome& replica : ran.replicas) {
            EXPECT_LE(largest_difference(replica.parameters, whole.parameters), 1e-10)
                << name_of(spec) << " zero " << zero << " clip " << clip;
            EXPECT_EQ(replica.replica_difference, 0) << name_of(spec);
            EXPECT_EQ(largest_difference(replica.parameters, ran.replicas[0].parameters), 0);
          }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Replicas, EveryModel, ::testing::ValuesIn(tiny_models()),
                         [](const auto& info) { return info.param; });

// Equal parts of each bucket: all of the state once, over two replicas half of it on each rank (an
// element more or less a bucket).
TEST(Replicas, WithZeRO1TheyDivideTheStateInEqualParts) {
  const Model model("tiny_gpt");
  RunOptions options;
  options.rank.update = true;
  const ScheduleSpec one = point("1f1b", 1, 2, 1);
  const Ran whole = run_replicas(replicated(model, one, {2, true, 0}), model.source, options);
  const Ran divided = run_replicas(replicated(model, one, {2, true, 1}), model.source, options);
  EXPECT_EQ(whole.state, 2 * whole.largest_state);
  EXPECT_EQ(divided.state, whole.largest_state);
  EXPECT_LE(divided.largest_state, whole.largest_state / 2 + 2 * 2);
}

TEST(Replicas, RankNumbersAreCoordinateTimesStride) {
  const Model model("tiny_mlp");
  const Pipeline near = replicated(model, point("1f1b", 2, 2, 1), {3, true, 0}),
                 far = replicated(model, point("1f1b", 2, 2, 1), {3, false, 0});
  EXPECT_EQ(near.copies_of(RankId{1}), (std::vector<RankId>{RankId{3}, RankId{4}, RankId{5}}));
  EXPECT_EQ(near.replica_ranks(2), (std::vector<RankId>{RankId{2}, RankId{5}}));
  EXPECT_EQ(far.copies_of(RankId{1}), (std::vector<RankId>{RankId{1}, RankId{3}, RankId{5}}));
  EXPECT_EQ(far.replica_ranks(2), (std::vector<RankId>{RankId{4}, RankId{5}}));
  for (const Pipeline* pipeline : {&near, &far})
    for (std::size_t d = 0; d < 3; ++d)
      for (const RankId r : {RankId{0}, RankId{1}}) {
        EXPECT_EQ(pipeline->replica_of(pipeline->number(d, r)), d);
        EXPECT_EQ(pipeline->pipeline_rank_of(pipeline->number(d, r)), r);
      }
}

TEST(Replicas, TheCheckComparesAllOfThem) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = replicated(model, point("zb_h1", 2, 3, 1), {2, true, 0});
  const RankOptions options{.placing = {.double_precision = true}, .seed = 3};
  run_ranks(pipeline.all_ranks(), at::kCPU, [&](RankId number, Transport& transport) {
    const CheckReport report =
        check_pipeline(pipeline, number, model.source, options, 1e-12, transport);
    if (number != RankId{0}) return;
    EXPECT_TRUE(report.right()) << to_string(report);
    // Two losses; each parameter twice, the tied one on both ranks.
    EXPECT_EQ(report.tensors, 2 + 2 * (model.graph.parameters.size() + 1));
  });
}

class ReplicaCheckpoint : public ::testing::Test {
 protected:
  ReplicaCheckpoint()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("replicas_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ReplicaCheckpoint() override { std::filesystem::remove_all(folder_); }

  static std::vector<double> train_on(const Pipeline& pipeline, const Model& model,
                                      const TrainingSettings& settings) {
    RankOptions options{.placing = {.double_precision = true}, .seed = 7};
    options.optimizer.kind = Optimizer::AdamW;
    options.optimizer.weight_decay = 0.01;
    std::vector<double> losses;
    RandomTurns turns;
    run_ranks(pipeline.all_ranks(), at::kCPU, [&](RankId number, Transport& transport) {
      train(pipeline, model.source, options, settings, {number, transport, turns, {}},
            [&](const StepProgress& progress) { losses.push_back(progress.loss); });
    });
    return losses;
  }

  std::filesystem::path folder_;
};

// Eight microbatches a step everywhere: DP2 x PP2 with and without ZeRO 1, PP4, DP4, one device.
TEST_F(ReplicaCheckpoint, ResumesUnderEveryOtherMeshWithTheSameLosses) {
  for (const char* name : {"tiny_gpt", "tiny_convnet"}) {
    const Model model(name);
    const std::vector<Pipeline> meshes{
        replicated(model, point("1f1b", 2, 4, 1), {2, true, 1}),
        replicated(model, point("interleaved_1f1b", 2, 4, 2), {2, false, 0}),
        model.pipeline(point("1f1b", 4, 8, 1)),
        replicated(model, point("1f1b", 1, 2, 1), {4, true, 1}),
        model.pipeline(point("1f1b", 1, 8, 1))};
    const auto uninterrupted = train_on(meshes.back(), model, {.steps = 6});
    for (const Pipeline& from : meshes) {
      const auto begun = train_on(from, model, {.steps = 3, .save = folder_});
      for (const Pipeline& to : meshes) {
        const auto continued =
            train_on(to, model, {.steps = 3, .resume = newest_checkpoint(folder_)});
        for (std::size_t i = 0; i < 3; ++i) {
          EXPECT_NEAR(begun.at(i), uninterrupted[i], 1e-11 * uninterrupted[i]);
          EXPECT_NEAR(continued.at(i), uninterrupted[3 + i], 1e-11 * uninterrupted[3 + i])
              << name << ", from " << from.replicas.count << "x" << from.ranks() << " to "
              << to.replicas.count << "x" << to.ranks();
        }
      }
      std::filesystem::remove_all(folder_);
    }
  }
}

class ReplicaProcesses : public ProcessTest {
 protected:
  Ended end_of(std::vector<std::string> verb) const { return start(arguments(verb))->wait(kLong); }
};

TEST_F(ReplicaProcesses, AreCheckedOverSockets) {
  const Ended ended = end_of({"check", "--fp64", "--dp", "2"});
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("equal those of the unsplit model"));
}

TEST_F(ReplicaProcesses, TrainWithZeRO1AndResumeWithout) {
  const std::string save = (folder_ / "save").string();
  const Ended first = end_of(
      {"train", "--steps", "2", "--dp", "2", "--zero", "1", "--order", "pp,dp", "--save", save});
  EXPECT_EQ(first.code, 0) << first.text;
  const Ended second = end_of({"train", "--steps", "1", "--resume", save, "--dp", "2"});
  EXPECT_EQ(second.code, 0) << second.text;
  EXPECT_THAT(second.text, HasSubstr("step 3: loss"));
}

TEST_F(ReplicaProcesses, WhatDoesNotFitIsRefusedWithTheRemedy) {
  const auto refused = [&](std::vector<std::string> verb, const std::string& reason) {
    const Ended ended = end_of(std::move(verb));
    EXPECT_EQ(ended.code, 2) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(reason));
  };
  refused({"train", "--dp", "0"}, "--dp must be at least 1");
  refused({"train", "--dp", "2", "--zero", "3"}, "--zero must be 0 or 1");
  refused({"train", "--dp", "2", "--order", "dp"}, "--order is dp,pp or pp,dp, not 'dp'");
  refused({"train", "--dp", "2", "--global-batch", "24"}, "use --dp 3");
  refused({"train", "--dp", "2", "--global-batch", "15"},
          "plan for a batch that 2 divides, or use --dp 2 with a batch of 16");
  refused({"train", "--dp", "2", "--defer-batch-norm"}, "leave one of the two out");
  const Ended few = start(arguments({"train", "--dp", "2"}), {{"RANK", "0"},
                                                              {"WORLD_SIZE", "3"},
                                                              {"MASTER_ADDR", "localhost"},
                                                              {"MASTER_PORT", "29511"}})
                        ->wait(kLong);
  EXPECT_EQ(few.code, 2);
  EXPECT_THAT(few.text, HasSubstr("WORLD_SIZE=3, 2 replicas of a plan with 3 ranks are 6 ranks"));
}

}  // namespace
}  // namespace pfeife
