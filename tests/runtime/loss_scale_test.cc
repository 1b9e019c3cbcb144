// fp16 with one loss scale for all stages and replicas, against a loop written by hand on the
// unsplit model that asks LibTorch's own kernel how the scale goes on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "runtime/execute/check.h"
#include "runtime/train/training.h"
#include "tests/runtime/pipelines.h"
#include "tests/runtime/split_batch.h"

namespace pfeife {
namespace {

using namespace testing;

constexpr int kSteps = 50;
constexpr double kRate = 0.05;
// Grows every fourth good step, so that gradients overflow now and then by themselves.
constexpr LossScaleOptions kScale{.initial = 1 << 22, .growth_interval = 4};

/// Inputs of a step; of some steps a number is no finite one, in the last microbatch or the first.
StepInputs inputs_with_infs(const Pipeline& pipeline, int step) {
  StepInputs inputs = inputs_of(pipeline, static_cast<std::uint64_t>(step), {});
  if (step != 7 && step != 23 && step != 24) return inputs;
  for (auto& [id, tensor] : step == 23 ? inputs.microbatches.front() : inputs.microbatches.back())
    if (tensor.is_floating_point()) {
      tensor = tensor.clone();
      tensor.view(-1)[0] = INFINITY;
      return inputs;
    }
  return inputs;
}

struct Trained {
  std::vector<double> losses, scales;
  int skipped = 0;
};

RankOptions fp16_options() {
  RankOptions options{.autocast = at::kHalf, .time_actions = false, .seed = 7};
  options.optimizer = {.kind = Optimizer::Sgd, .learning_rate = kRate};
  return options;
}

Trained by_hand(const Model& model, std::size_t microbatches) {
  const Pipeline whole = model.unsplit(microbatches);
  Trained trained;
  RankOptions options = fp16_options();
  options.update = false;
  run_with(whole, model.source, options, [&](RankPipeline& own) {
    at::Tensor scale = at::full({1}, kScale.initial), good = at::zeros({1}, at::kInt);
    for (int step = 0; step < kSteps; ++step) {
      StepInputs inputs = inputs_with_infs(whole, step);
      for (double& share : inputs.shares) share *= scale.item<double>();
      own.step(inputs);
      double loss = 0;
      for (const double one : own.losses()) loss += one / static_cast<double>(microbatches);
      trained.losses.push_back(loss);
      const at::NoGradGuard no_gradients;
      bool finite = true;
      for (auto& [p, tensor] : own.tensors().parameters)
        finite = finite && (!tensor.grad().defined() ||
                            at::isfinite(tensor.grad()).all().template item<bool>());
      for (auto& [p, tensor] : own.tensors().parameters) {
        if (!tensor.grad().defined()) continue;
        if (finite) tensor.sub_(tensor.grad() / scale.item<double>(), kRate);
        tensor.mutable_grad().reset();
      }
      trained.skipped += finite ? 0 : 1;
      at::_amp_update_scale_(scale, good, at::full({1}, finite ? 0.0F : 1.0F), kScale.growth,
                             kScale.backoff, kScale.growth_interval);
      trained.scales.push_back(scale.item<double>());
    }
    return std::vector<TaskRecord>();
  });
  return trained;
}

Trained in_stages(const Model& model, const ScheduleSpec& spec, double clip_norm,
                  const ReplicaRanks& replicas = {}) {
  Pipeline pipeline = model.pipeline(spec);
  add_norm_reduction(pipeline);
  pipeline.replicas = replicas;
  const Pipeline batch = model.unsplit(pipeline.microbatches * replicas.count);
  Trained trained;
  Outcome outcome;
  std::mutex mutex;
  RandomTurns turns;
  RankOptions options = fp16_options();
  options.loss_scale = kScale;
  options.optimizer.clip_norm = clip_norm;
  run_ranks(pipeline.all_ranks(), at::kCPU, [&](RankId rank, Transport& transport) {
    RankPipeline own(pipeline, rank, model.source, options, turns, transport);
    std::vector<double> losses, scales;
    for (int step = 0; step < kSteps; ++step) {
      own.step(
          share_of_replica(inputs_with_infs(batch, step), own.replica(), pipeline.microbatches));
      losses.push_back(
          mean_loss_everywhere(own, rank, transport, static_cast<std::uint64_t>(step)));
      scales.push_back(own.loss_scale()->scale());
    }
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(trained.scales.empty() || scales == trained.scales) << "of the other ranks";
    trained = {losses, scales, kSteps - static_cast<int>(own.updates())};
    collect(own, outcome);
  });
  EXPECT_EQ(outcome.replica_difference, 0);
  return trained;
}

void expect_near(double found, double expected, double tolerance, int step) {
  if (std::isfinite(expected))
    EXPECT_NEAR(found, expected, tolerance * std::abs(expected)) << "step " << step;
  else
    EXPECT_FALSE(std::isfinite(found)) << "step " << step;
}

void expect_equal(const Trained& found, const Trained& expected, double tolerance,
                  const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(found.scales, expected.scales);
  EXPECT_EQ(found.skipped, expected.skipped);
  for (std::size_t step = 0; step < kSteps; ++step)
    expect_near(found.losses[step], expected.losses[step], tolerance, static_cast<int>(step));
}

// Skipped on every rank or on none. The losses differ by sums in another order alone: tiny_mlp has
// none; a tied weight's gradient is added up in another order.
TEST(LossScale, IsThatOfTheUnsplitModelOverFiftySteps) {
  for (const auto& [name, tolerance] : {std::pair{"tiny_mlp", 1e-6}, {"tiny_gpt", 2e-3}}) {
    const Model model(name);
    const Trained expected = by_hand(model, 4);
    EXPECT_GE(expected.skipped, 3);
    EXPECT_LE(expected.skipped, kSteps / 2);
    for (const ScheduleSpec& spec :
         {ScheduleSpec{"1f1b", 3, 4, 1, {}, {}}, ScheduleSpec{"zbv", 2, 4, 2, {}, {}}}) {
      expect_equal(in_stages(model, spec, 0), expected, tolerance,
                   std::string(name) + " " + name_of(spec));
    }
    std::cout << name << ": " << expected.skipped << " of " << kSteps << " steps skipped, scale "
              << kScale.initial << " -> " << expected.scales.back() << ", loss "
              << expected.losses.front() << " -> " << expected.losses.back() << "\n";
  }
}

// Eight microbatches a step everywhere. A gradient that is too large shows on the one replica that
// adds it up, or on all; every replica skips the step all the same. Replicas add gradients up in
// another order, and now and then fp16 rounds the weight that follows the other way.
TEST(LossScale, IsOneForAllReplicas) {
  for (const auto& [name, tolerance] : {std::pair{"tiny_mlp", 2e-3}, {"tiny_gpt", 2e-3}}) {
    const Model model(name);
    const Trained expected = by_hand(model, 8);
    EXPECT_GE(expected.skipped, 3);
    EXPECT_LE(expected.skipped, kSteps / 2);
    expect_equal(in_stages(model, {"1f1b", 4, 8, 1, {}, {}}, 0), expected, tolerance, "PP4");
    for (const int zero : {0, 1})
      for (const bool neighbours : {true, false})
        expect_equal(in_stages(model, {"1f1b", 2, 4, 1, {}, {}}, 0, {2, neighbours, zero}),
                     expected, tolerance,
                     stream_all(name, " DP2 x PP2, ZeRO ", zero, neighbours ? " near" : " far"));
  }
}

// A limit that no norm reaches changes nothing: clipping sees gradients without the scale.
TEST(LossScale, IsGoneBeforeGradientsAreClipped) {
  const Model model("tiny_mlp");
  const ScheduleSpec spec{"1f1b", 2, 4, 1, {}, {}};
  EXPECT_EQ(in_stages(model, spec, 1e6).losses.back(), in_stages(model, spec, 0).losses.back());
  EXPECT_NE(in_stages(model, spec, 1e-2).losses.back(), in_stages(model, spec, 0).losses.back());
}

// Gradients of 1e-9 are zero in fp16, on both sides of the comparison; one that is too large makes
// the scale smaller.
TEST(LossScale, IsThereWhenAPipelineIsChecked) {
  const auto file = source_folder() / "tests/data/models/small_loss.pt2";
  const Graph graph = read_pt2(file);
  const std::vector<NodeId> cuts{legal_cuts(graph, effects_of(graph)).at(2)};
  const ScheduleSpec spec{"1f1b", 2, 4, 1, {}, {}};
  const Pipeline pipeline = make_pipeline(graph, cuts, generate(spec), placement_for(spec));
  const auto report_with = [&](const std::optional<LossScaleOptions>& scale) {
    RankOptions options = fp16_options();
    options.loss_scale = scale;
    const WeightSource source(file, 1);
    CheckReport report;
    RandomTurns turns;
    run_ranks(2, at::kCPU, [&](RankId rank, Transport& transport) {
      const auto found = check_pipeline(pipeline, rank, source, options, 1e-6, transport);
      if (rank == RankId{0}) report = found;
    });
    EXPECT_TRUE(report.right()) << to_string(report);
    return report;
  };
  EXPECT_EQ(report_with({}).zeros, 6u);
  EXPECT_EQ(report_with(LossScaleOptions{}).zeros, 0u);
  EXPECT_EQ(report_with(LossScaleOptions{.initial = 0x1p60F}).zeros, 0u);
}

class SavedLossScale : public ::testing::Test {
 protected:
  ~SavedLossScale() override { std::filesystem::remove_all(folder_); }

  static std::vector<double> train_on(const Pipeline& pipeline, const Model& model,
                                      const std::optional<LossScaleOptions>& scale,
                                      const TrainingSettings& settings) {
    RankOptions options = fp16_options();
    options.optimizer.kind = Optimizer::AdamW;
    options.optimizer.learning_rate = 1e-3;
    options.loss_scale = scale;
    std::vector<double> losses;
    RandomTurns turns;
    run_ranks(pipeline.all_ranks(), at::kCPU, [&](RankId number, Transport& transport) {
      train(pipeline, model.source, options, settings, {number, transport, turns, {}},
            [&](const StepProgress& progress) { losses.push_back(progress.loss); });
    });
    return losses;
  }
  CheckpointInfo saved() const {
    return read_checkpoint_info(newest_checkpoint(folder_) / "checkpoint.json");
  }

  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("loss_scale_" + std::to_string(getpid()));
};

// The scale shrinks and grows on both sides of the checkpoint, which lies between two growths.
TEST_F(SavedLossScale, GoesOnWhereItWas) {
  const Model model("tiny_gpt");
  Pipeline mesh = model.pipeline({"1f1b", 2, 2, 1, {}, {}});
  mesh.replicas = {2, true, 1};
  const Pipeline other = model.pipeline({"zb_h1", 4, 4, 1, {}, {}});
  const auto uninterrupted = train_on(mesh, model, kScale, {.steps = 24, .save = folder_});
  const CheckpointInfo end = saved();
  std::filesystem::remove_all(folder_);
  const auto begun = train_on(mesh, model, kScale, {.steps = 10, .save = folder_});
  const CheckpointInfo middle = saved();
  EXPECT_GT(middle.good_steps, 0);
  EXPECT_LT(middle.updates, middle.steps) << "skipped";
  EXPECT_LT(end.updates, middle.updates + 14) << "skipped";
  EXPECT_NE(middle.loss_scale, kScale.initial);
  const std::filesystem::path from = newest_checkpoint(folder_), again = folder_ / "again";
  for (const Pipeline* to : {&std::as_const(mesh), &other}) {
    const auto continued =
        train_on(*to, model, kScale, {.steps = 14, .save = again, .resume = from});
    const CheckpointInfo info = read_checkpoint_info(newest_checkpoint(again) / "checkpoint.json");
    EXPECT_EQ(info.loss_scale, end.loss_scale);
    EXPECT_EQ(info.good_steps, end.good_steps);
    EXPECT_EQ(info.updates, end.updates);
    for (std::size_t i = 0; i < 14; ++i)
      if (to == &mesh)
        EXPECT_EQ(continued.at(i), uninterrupted.at(10 + i)) << i;
      else
        EXPECT_NEAR(continued.at(i), uninterrupted.at(10 + i), 2e-3 * uninterrupted.at(10 + i));
    std::filesystem::remove_all(again);
  }
}

// The file of a model that was trained in bf16, say.
TEST_F(SavedLossScale, BeginsAnewFromACheckpointThatHasNone) {
  const Model model("tiny_mlp");
  const Pipeline pipeline = model.pipeline({"1f1b", 2, 4, 1, {}, {}});
  train_on(pipeline, model, std::nullopt, {.steps = 3, .save = folder_});
  EXPECT_EQ(saved().loss_scale, 0);
  train_on(pipeline, model, LossScaleOptions{.initial = 256},
           {.steps = 2, .save = folder_, .resume = newest_checkpoint(folder_)});
  EXPECT_EQ(saved().loss_scale, 256);
  EXPECT_EQ(saved().good_steps, 2);
  EXPECT_EQ(saved().steps, 5);
}

}  // namespace
}  // namespace pfeife
