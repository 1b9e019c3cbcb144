// Features of training against computations of their own: what recomputation, autocast, clipping,
// evaluation, accumulation, random operators and running statistics have to give.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "tests/runtime/same.h"

namespace pfeife {
namespace {

using namespace testing;

ScheduleSpec point(const std::string& family, std::size_t ranks, std::size_t microbatches,
                   std::size_t stages_per_rank) {
  return {family, ranks, microbatches, stages_per_rank, {}, {}};
}
/// Schedules that differ as much as they can: plain, split backward, V-shaped, looped.
std::vector<ScheduleSpec> different_points() {
  return {point("1f1b", 3, 4, 1), point("zb_h1", 3, 4, 1), point("zbv", 2, 4, 2),
          point("looped_bfs", 2, 4, 3)};
}
std::vector<TaskRecord> one_step(const Pipeline& pipeline, RankPipeline& own,
                                 const RankOptions& options) {
  return own.step(inputs_of(pipeline, 0, options.placing));
}
const at::Tensor& parameter(const Model& model, const Outcome& outcome, const std::string& name) {
  for (std::size_t p = 0; p < model.graph.parameters.size(); ++p)
    for (const std::string& known : model.graph.parameters[p].names)
      if (known == name) return outcome.parameters.at(ParameterId{p});
  throw std::out_of_range(name);
}
const at::Tensor& buffer(const Model& model, const Outcome& outcome, const std::string& name) {
  for (const auto& [id, tensor] : outcome.buffers)
    if (model.graph.value(id).source_name == name) return tensor;
  throw std::out_of_range(name);
}
const at::Tensor& input(const Model& model, const StepInputs& inputs, std::size_t m,
                        const std::string& name) {
  for (const auto& [id, tensor] : inputs.microbatches[m])
    if (model.graph.value(id).name == name) return tensor;
  throw std::out_of_range(name);
}

class Features : public ::testing::TestWithParam<std::string> {};

// Dropout must draw the same numbers again, and statistics must not advance twice.
TEST_P(Features, RecomputationOfStagesChangesNothing) {
  const Model model(GetParam());
  const Outcome whole = run(model.unsplit(4), model.source);
  for (const ScheduleSpec& spec : different_points()) {
    const Pipeline pipeline = model.pipeline(spec);
    RunOptions options;
    for (const bool every : {true, false}) {
      options.rank.recompute.assign(pipeline.stages.stages, true);
      if (!every) options.rank.recompute.back() = false;
      for (const bool except_last : {false, true}) {
        options.rank.recompute_except_last = except_last;
        expect_same(pipeline, run(pipeline, model.source, options), whole, 1e-12, name_of(spec));
      }
    }
  }
}

/// Blocks between every `each`th legal cut, within a stage and up to its ends; of two, every other.
std::vector<NodeRange> blocks_between_cuts(const Pipeline& pipeline, std::size_t each) {
  const std::vector<NodeId> borders = legal_cuts(pipeline.graph, pipeline.effects);
  std::vector<NodeRange> blocks;
  std::int32_t before = -1;
  for (std::size_t b = 0; b < borders.size(); ++b) {
    const bool cut = std::ranges::any_of(pipeline.split.stages, [&](const StageSlice& slice) {
      return slice.nodes.back() == borders[b];
    });
    if (b % each != 0 && !cut) continue;
    if (each != 2 || b % 4 == 0) blocks.push_back({before, borders[b].value});
    before = borders[b].value;
  }
  blocks.push_back({before, static_cast<std::int32_t>(pipeline.graph.nodes.size()) - 1});
  return blocks;
}

TEST_P(Features, RecomputingBlocksChangesNothing) {
  const Model model(GetParam());
  const Outcome whole = run(model.unsplit(4), model.source);
  for (const ScheduleSpec& spec : different_points()) {
    const Pipeline pipeline = model.pipeline(spec);
    for (const std::size_t each : {1, 2, 3}) {
      RunOptions options;
      options.rank.blocks = blocks_between_cuts(pipeline, each);
      for (const bool except_last : {false, true}) {
        options.rank.recompute_except_last = except_last;
        expect_same(pipeline, run(pipeline, model.source, options), whole, 1e-12, name_of(spec));
      }
    }
  }
}

// What is computed again is rounded to bf16 as it was the first time; gradients of a matrix that
// several layers share are added up in another order.
TEST_P(Features, AutocastIsTheSameWhereStagesOrBlocksAreRecomputed) {
  const Model model(GetParam());
  RunOptions plain;
  plain.rank.placing.double_precision = false;
  plain.rank.autocast = at::kBFloat16;
  for (const ScheduleSpec& spec : different_points()) {
    const Pipeline pipeline = model.pipeline(spec);
    const Outcome kept = run(pipeline, model.source, plain);
    RunOptions stages = plain, blocks = plain;
    stages.rank.recompute.assign(pipeline.stages.stages, true);
    blocks.rank.blocks = blocks_between_cuts(pipeline, 1);
    for (const RunOptions& options : {stages, blocks}) {
      const Outcome again = run(pipeline, model.source, options);
      EXPECT_LE(largest_difference(again.gradients, kept.gradients), 1e-6) << name_of(spec);
      EXPECT_EQ(again.losses, kept.losses) << name_of(spec);
    }
  }
}

// bf16 has 8 bits: a rounding is at most 2^-9 = 0.2 %. Where a weight is used twice or a value has
// several readers, the unsplit model adds their gradients in bf16, a pipeline some of them in
// float32; a few such roundings, carried through the layers below, stay under 5 %.
TEST_P(Features, AutocastInBf16DiffersByItsRounding) {
  const Model model(GetParam());
  RunOptions options;
  options.rank.placing.double_precision = false;
  const Outcome exact = run(model.unsplit(4), model.source, options);
  options.rank.autocast = at::kBFloat16;
  const Outcome whole = run(model.unsplit(4), model.source, options);
  EXPECT_GT(largest_difference(whole.gradients, exact.gradients), 1e-4) << "computes in bf16";
  const auto terms = norms_of_microbatches(model, 4, options);
  for (const ScheduleSpec& spec : different_points()) {
    const Outcome split = run(model.pipeline(spec), model.source, options);
    for (const auto& [p, expected] : whole.gradients)
      EXPECT_LE(distance(split.gradients.at(p), expected), 0.05 * terms.at(p))
          << name_of(spec) << " " << model.graph.parameters[p.index()].names.front();
    for (std::size_t m = 0; m < 4; ++m)
      EXPECT_NEAR(split.losses.at(m), whole.losses[m], 0.01 * whole.losses[m]) << name_of(spec);
    EXPECT_EQ(split.replica_difference, 0) << name_of(spec);
  }
}

// p -= rate * g * min(1, limit / (|all g| + 1e-6)), every parameter of the model counted once.
TEST_P(Features, ClippingTakesTheNormOfTheWholeModel) {
  const Model model(GetParam());
  const Outcome whole = run(model.unsplit(4), model.source);
  double square = 0;
  for (const auto& [p, g] : whole.gradients) square += g.square().sum().item<double>();
  for (const double share : {0.5, 2.0}) {
    RunOptions options;
    options.rank.update = true;
    options.rank.optimizer = {
        .kind = Optimizer::Sgd, .learning_rate = 0.5, .clip_norm = share * std::sqrt(square)};
    const double factor = std::min(1.0, options.rank.optimizer.clip_norm / std::sqrt(square));
    std::map<ParameterId, at::Tensor> expected;
    for (const auto& [p, value] : whole.parameters)
      expected[p] = whole.gradients.contains(p) ? value - 0.5 * factor * whole.gradients.at(p)
                                                : value.clone();
    for (const ScheduleSpec& spec : different_points()) {
      Pipeline pipeline = model.pipeline(spec);
      add_norm_reduction(pipeline);
      const Outcome split = run(pipeline, model.source, options);
      // The 1e-6 beside the norm changes a step by 1e-6 of itself.
      EXPECT_LE(largest_difference(split.parameters, expected), 2e-6) << name_of(spec);
      EXPECT_EQ(split.replica_difference, 0) << name_of(spec);
    }
  }
}

/// Ranks whose first stage is updated already when the optimizer step of the second begins.
int ranks_updating_in_the_row(const Model& model, const Pipeline& pipeline) {
  RankOptions options{.placing = {.double_precision = true}, .seed = 7};
  options.optimizer = {.kind = Optimizer::Sgd, .learning_rate = 0.5, .clip_norm = 1e-2};
  std::atomic<int> found = 0;
  run_with(pipeline, model.source, options, [&](RankPipeline& own) {
    std::map<ParameterId, at::Tensor> before;
    for (const auto& [p, tensor] : own.tensors().parameters) before[p] = tensor.detach().clone();
    int steps = 0;
    own.on_entering([&](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      if (action == nullptr || action->op != Op::OptimizerStep || ++steps != 2) return;
      found += std::ranges::any_of(own.tensors().parameters, [&](const auto& now) {
        return !at::equal(now.second.detach(), before.at(now.first));
      });
    });
    return one_step(pipeline, own, options);
  });
  return found;
}

// Without REDUCE_NORM in the rows nothing is updated before their end.
TEST(Norm, InTheRowsLetsOptimizerStepsFollowInTheRows) {
  const Model model("tiny_mlp");
  Pipeline pipeline = model.pipeline(point("zbv", 2, 4, 2));
  EXPECT_EQ(ranks_updating_in_the_row(model, pipeline), 0);
  add_norm_reduction(pipeline);
  EXPECT_EQ(ranks_updating_in_the_row(model, pipeline), 2);
}

// The second step adds the same microbatches to what is there.
TEST_P(Features, TwoStepCallsAccumulateTwiceTheGradient) {
  const Model model(GetParam());
  const Outcome once = run(model.unsplit(4), model.source);
  std::map<ParameterId, at::Tensor> twice;
  for (const auto& [p, g] : once.gradients) twice[p] = 2 * g;
  for (const ScheduleSpec& spec : different_points()) {
    const Pipeline pipeline = model.pipeline(spec);
    const RunOptions options;
    const Outcome split = run_with(pipeline, model.source, options.rank, [&](RankPipeline& own) {
      one_step(pipeline, own, options.rank);
      return one_step(pipeline, own, options.rank);
    });
    EXPECT_LE(largest_difference(split.gradients, twice), 1e-12) << name_of(spec);
    EXPECT_EQ(split.replica_difference, 0) << name_of(spec);
  }
}

TEST_P(Features, EvaluationBeforeAndAfterStepsChangesNothingInThem) {
  const Model model(GetParam());
  RunOptions options{.steps = 2};
  options.rank.update = true;
  const Outcome whole = run(model.unsplit(4), model.source, options);
  for (const ScheduleSpec& spec : different_points()) {
    const Pipeline pipeline = model.pipeline(spec);
    std::vector<double> first, again;
    const Outcome split = run_with(pipeline, model.source, options.rank, [&](RankPipeline& own) {
      const StepInputs inputs = inputs_of(pipeline, 0, options.rank.placing);
      own.evaluate(inputs);
      if (const auto losses = own.evaluation_losses(); !losses.empty()) first = losses;
      own.evaluate(inputs);
      if (const auto losses = own.evaluation_losses(); !losses.empty()) again = losses;
      own.step(inputs);
      own.evaluate(inputs);
      return own.step(inputs_of(pipeline, 1, options.rank.placing));
    });
    EXPECT_EQ(first.size(), 4u);
    EXPECT_EQ(first, again) << name_of(spec);
    EXPECT_LE(largest_difference(split.parameters, whole.parameters), 1e-10) << name_of(spec);
    EXPECT_LE(largest_difference(split.buffers, whole.buffers), 1e-10) << name_of(spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Features, ::testing::ValuesIn(tiny_models()),
                         [](const auto& info) { return info.param; });

/// tiny_convnet in evaluation, written out.
double evaluated_convnet(const Model& model, const Outcome& state, const StepInputs& inputs,
                         std::size_t m) {
  const auto p = [&](const std::string& name) { return parameter(model, state, name); };
  const auto normed = [&](const at::Tensor& x, const std::string& name) {
    return at::batch_norm(x, p(name + ".weight"), p(name + ".bias"),
                          buffer(model, state, name + ".running_mean"),
                          buffer(model, state, name + ".running_var"), false, 0.1, 1e-5, false);
  };
  const at::Tensor images = input(model, inputs, m, "images");
  at::Tensor h = at::relu(normed(at::conv2d(images, p("stem.0.weight"), {}, 1, 1), "stem.1"));
  for (const std::string block : {"blocks.0", "blocks.1", "blocks.2"}) {
    at::Tensor inner = at::conv2d(h, p(block + ".0.weight"), p(block + ".0.bias"), 1, 1);
    inner = at::relu(normed(inner, block + ".1"));
    h = at::relu(h + at::conv2d(inner, p(block + ".4.weight"), p(block + ".4.bias")));
  }
  const at::Tensor mean = images.mean(1, true), brightest = mean.flatten(1).argmax(1);
  h = at::where(mean > 0, h, 0.1 * h).flatten(2);
  const at::Tensor where = brightest.view({-1, 1, 1}).expand({-1, h.size(1), 1});
  const at::Tensor features = h.mean(2) + h.gather(2, where).flatten(1);
  return at::cross_entropy_loss(at::linear(features, p("head.weight"), p("head.bias")),
                                input(model, inputs, m, "labels"))
      .item<double>();
}

TEST(Evaluation, IsTheModelWithoutDropoutAndWithItsRunningStatistics) {
  const Model model("tiny_convnet");
  const Pipeline pipeline = model.pipeline(point("zbv", 2, 2, 2));
  RunOptions options;
  std::vector<double> losses;
  StepInputs inputs = inputs_of(pipeline, 5, options.rank.placing);
  const Outcome state = run_with(pipeline, model.source, options.rank, [&](RankPipeline& own) {
    const auto records = one_step(pipeline, own, options.rank);  // statistics are no longer 0 and 1
    own.evaluate(inputs);
    if (const auto made = own.evaluation_losses(); !made.empty()) losses = made;
    return records;
  });
  ASSERT_EQ(losses.size(), 2u);
  const at::NoGradGuard no_gradients;
  for (std::size_t m = 0; m < 2; ++m)
    EXPECT_NEAR(losses[m], evaluated_convnet(model, state, inputs, m), 1e-12);
}

TEST(RandomOperators, DrawTheSameNumbersUnderEveryPlanAndOthersEveryTime) {
  const Model model("tiny_convnet");
  const RunOptions options;
  const auto losses_at = [&](const ScheduleSpec& spec, std::uint64_t seed, std::uint64_t step) {
    const Pipeline pipeline = model.pipeline(spec);
    RankOptions own_options = options.rank;
    own_options.seed = seed;
    return run_with(pipeline, model.source, own_options,
                    [&](RankPipeline& own) {
                      StepInputs inputs = inputs_of(pipeline, 0, options.rank.placing);
                      inputs.microbatches[1] = inputs.microbatches[0];  // only dropout differs
                      inputs.step = step;
                      return own.step(inputs);
                    })
        .losses;
  };
  const auto first = losses_at(point("1f1b", 3, 4, 1), 1, 0);
  for (const ScheduleSpec& spec : different_points())
    for (std::size_t m = 0; m < 4; ++m)
      EXPECT_NEAR(losses_at(spec, 1, 0).at(m), first[m], 1e-13) << name_of(spec);
  EXPECT_GT(std::abs(first[0] - first[1]), 1e-6) << "microbatches draw for themselves";
  EXPECT_GT(std::abs(losses_at(point("1f1b", 3, 4, 1), 1, 1)[0] - first[0]), 1e-6) << "steps, too";
  EXPECT_GT(std::abs(losses_at(point("1f1b", 3, 4, 1), 2, 0)[0] - first[0]), 1e-6) << "and seeds";
}

// running = 0.9 running + 0.1 mean over the microbatch, for each of the N microbatches in turn.
TEST(BatchNorm, StatisticsAdvanceOnceForEveryMicrobatch) {
  const Model model("tiny_convnet");
  const RunOptions options;
  const StepInputs inputs = inputs_of(model.unsplit(4), 0, options.rank.placing);
  for (const ScheduleSpec& spec : different_points()) {
    const Outcome split = run(model.pipeline(spec), model.source);
    at::Tensor running = at::zeros({8}, at::kDouble);
    for (std::size_t m = 0; m < 4; ++m) {
      const at::Tensor made = at::conv2d(input(model, inputs, m, "images"),
                                         parameter(model, split, "stem.0.weight"), {}, 1, 1);
      running = 0.9 * running + 0.1 * made.detach().mean({0, 2, 3});
    }
    EXPECT_LE(distance(buffer(model, split, "stem.1.running_mean"), running), 1e-12)
        << name_of(spec);
    EXPECT_EQ(buffer(model, split, "stem.1.num_batches_tracked").item<std::int64_t>(), 4);
  }
}

// Once a step, with mean and variance over the images of all microbatches, however they are dealt;
// losses and gradients know nothing of it, nor do computations of a forward again.
TEST(DeferredBatchNorm, AdvancesOnceAStepWithTheWholeBatch) {
  const Model model("tiny_convnet");
  RunOptions options;
  const Outcome plain = run(model.unsplit(4), model.source, options);
  options.rank.defer_batch_norm = true;
  const StepInputs inputs = inputs_of(model.unsplit(4), 0, options.rank.placing);
  std::vector<at::Tensor> images;
  for (std::size_t m = 0; m < 4; ++m) images.push_back(input(model, inputs, m, "images"));
  for (const ScheduleSpec& spec : different_points())
    for (const char recompute : {'-', 's', 'b'}) {
      const Pipeline pipeline = model.pipeline(spec);
      options.rank.recompute.assign(pipeline.stages.stages, recompute == 's');
      options.rank.blocks.clear();
      if (recompute == 'b') options.rank.blocks = blocks_between_cuts(pipeline, 1);
      const Outcome split = run(pipeline, model.source, options);
      const at::Tensor whole =
          at::conv2d(at::cat(images), parameter(model, split, "stem.0.weight"), {}, 1, 1).detach();
      EXPECT_LE(distance(buffer(model, split, "stem.1.running_mean"), 0.1 * whole.mean({0, 2, 3})),
                1e-12)
          << name_of(spec);
      EXPECT_LE(distance(buffer(model, split, "stem.1.running_var"),
                         0.9 + 0.1 * whole.var({0, 2, 3}, /*unbiased=*/true)),
                1e-12)
          << name_of(spec);
      EXPECT_EQ(buffer(model, split, "stem.1.num_batches_tracked").item<std::int64_t>(), 1);
      EXPECT_EQ(split.losses.size(), 4u);
      for (std::size_t m = 0; m < split.losses.size(); ++m)
        EXPECT_NEAR(split.losses[m], plain.losses[m], 1e-12) << name_of(spec);
      EXPECT_LE(largest_difference(split.gradients, plain.gradients), 1e-11) << name_of(spec);
    }
}

TEST(DeferredBatchNorm, WeighsMicrobatchesByTheirSamples) {
  const Model model("tiny_convnet");
  RunOptions options;
  options.rank.defer_batch_norm = true;
  const Pipeline pipeline = model.pipeline(point("1f1b", 2, 4, 1));
  StepInputs inputs = inputs_of(pipeline, 0, options.rank.placing);
  const std::int64_t full = model.graph.microbatch_size;
  ASSERT_GT(full, 1);
  inputs.samples = {full, 1, 0, full};
  for (auto& [id, tensor] : inputs.microbatches[1]) tensor = tensor.narrow(0, 0, 1);
  const Outcome split = run_with(pipeline, model.source, options.rank,
                                 [&](RankPipeline& own) { return own.step(inputs); });
  const at::Tensor images =
      at::cat({input(model, inputs, 0, "images"), input(model, inputs, 1, "images"),
               input(model, inputs, 3, "images")});
  const at::Tensor whole =
      at::conv2d(images, parameter(model, split, "stem.0.weight"), {}, 1, 1).detach();
  EXPECT_LE(distance(buffer(model, split, "stem.1.running_var"),
                     0.9 + 0.1 * whole.var({0, 2, 3}, /*unbiased=*/true)),
            1e-12);
}

}  // namespace
}  // namespace pfeife
