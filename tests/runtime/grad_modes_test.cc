// Models that switch gradients off or checkpoint, against what plain torch computes for them:
// tests/data/models/grad_modes.py makes archives and expected values.
#include <gtest/gtest.h>

#include "tests/runtime/pipelines.h"
#include "tests/runtime/stored_values.h"

namespace pfeife {
namespace {

using namespace testing;

constexpr const char* kFolder = "tests/data/models/grad_modes";
constexpr std::size_t kMicrobatches = 4;

class GradModes : public ::testing::TestWithParam<const char*> {
 protected:
  GradModes() : model(GetParam(), kFolder), torch(stored_values(kFolder, GetParam())) {}

  StepInputs inputs() const {
    StepInputs inputs{0, {}, equal_shares(kMicrobatches)};
    for (std::size_t m = 0; m < kMicrobatches; ++m) {
      auto& of = inputs.microbatches.emplace_back();
      for (const ValueId v : model.graph.inputs)
        of[v] = torch.at(stream_all(model.graph.value(v).name, ".", m));
    }
    return inputs;
  }
  Outcome run_step(const Pipeline& pipeline, const RankOptions& options) const {
    return run_with(pipeline, model.source, options,
                    [&](RankPipeline& own) { return own.step(inputs()); });
  }
  /// Losses, gradients and buffers are torch's, and no other parameter gets a gradient but zeros.
  void expect_torchs(const Outcome& outcome, const std::string& what) const {
    ASSERT_EQ(outcome.losses.size(), kMicrobatches) << what;
    for (std::size_t m = 0; m < kMicrobatches; ++m)
      EXPECT_NEAR(outcome.losses[m], torch.at(stream_all("loss.", m)).item<double>(), 1e-12)
          << what;
    for (std::size_t p = 0; p < model.graph.parameters.size(); ++p) {
      const std::string& name = model.graph.parameters[p].names.front();
      const auto theirs = torch.find("gradient." + name);
      const auto ours = outcome.gradients.find(ParameterId{p});
      const bool missing = ours == outcome.gradients.end();
      if (theirs == torch.end())
        EXPECT_TRUE(missing || norm_of(ours->second) == 0) << name << ", " << what;
      else if (missing)
        ADD_FAILURE() << name << " has no gradient, " << what;
      else
        EXPECT_LE(distance(ours->second, theirs->second), 1e-12 * norm_of(theirs->second))
            << name << ", " << what;
    }
    for (const auto& [b, tensor] : outcome.buffers)
      if (const auto theirs = torch.find("buffer." + model.graph.value(b).source_name);
          theirs != torch.end()) {
        EXPECT_LE(distance(tensor, theirs->second), 1e-12 * norm_of(theirs->second)) << what;
      }
    EXPECT_EQ(outcome.replica_difference, 0) << what;
  }

  const Model model;
  const std::map<std::string, at::Tensor> torch;
  const RankOptions plain{.placing = {.double_precision = true}, .seed = 7, .update = false};
};

std::vector<ScheduleSpec> points_of_grad_modes() {
  return {{"1f1b", 2, kMicrobatches, 1, {}, {}},
          {"1f1b", 3, kMicrobatches, 1, {}, {}},
          {"gpipe", 2, kMicrobatches, 1, {}, {}},
          {"zb_h1", 3, kMicrobatches, 1, {}, {}},
          {"zbv", 2, kMicrobatches, 2, {}, {}},
          {"dualpipev", 2, kMicrobatches, 2, {}, {}},
          {"looped_bfs", 2, kMicrobatches, 2, {}, {}},
          {"interleaved_1f1b", 2, kMicrobatches, 2, {}, {}}};
}

TEST_P(GradModes, UnsplitModelHasTorchsGradients) {
  expect_torchs(run_step(model.unsplit(kMicrobatches), plain), "unsplit");
}

TEST_P(GradModes, PipelinesHaveTorchsGradients) {
  for (const ScheduleSpec& spec : points_of_grad_modes())
    expect_torchs(run_step(model.pipeline(spec), plain), name_of(spec));
}

// One stage, so that several microbatches are in flight between a write into a buffer and its
// readers, under a schedule that runs all forwards first.
TEST_P(GradModes, AllForwardsFirstHaveTorchsGradients) {
  const ScheduleSpec spec{"gpipe", 1, kMicrobatches, 1, {}, {}};
  expect_torchs(run_step(model.pipeline(spec), plain), name_of(spec));
}

TEST_P(GradModes, RecomputedStagesHaveTorchsGradients) {
  for (const ScheduleSpec& spec : points_of_grad_modes()) {
    const Pipeline pipeline = model.pipeline(spec);
    RankOptions options = plain;
    options.recompute.assign(pipeline.stages.stages, true);
    expect_torchs(run_step(pipeline, options), name_of(spec));
  }
}

// Blocks between all legal cuts: one writes into a buffer, another reads it.
TEST_P(GradModes, RecomputedBlocksHaveTorchsGradients) {
  for (const ScheduleSpec& spec : points_of_grad_modes()) {
    const Pipeline pipeline = model.pipeline(spec);
    RankOptions options = plain;
    std::int32_t before = -1;
    for (const NodeId border : model.legal) {
      options.blocks.push_back({before, border.value});
      before = border.value;
    }
    expect_torchs(run_step(pipeline, options), name_of(spec));
  }
}

// What is computed without gradients keeps nothing for backward and takes none, as in torch.
TEST_P(GradModes, AsManyValuesNeedAGradientAsInTorch) {
  const auto needing = std::ranges::count_if(model.graph.values, [](const Value& value) {
    return value.role == ValueRole::Intermediate && value.requires_grad;
  });
  // All results of an operator count as needing one where any does: the loss broadcasts prediction
  // and target together, and a list may be split into such and others.
  const double in_torch = torch.at("needing").item<double>();
  EXPECT_GE(static_cast<double>(needing), in_torch);
  EXPECT_LE(static_cast<double>(needing), in_torch + 2);
}

INSTANTIATE_TEST_SUITE_P(Models, GradModes,
                         ::testing::Values("self_conditioned", "running_mean", "first_to_last",
                                           "assigned", "row", "metric", "checkpointed", "clamped",
                                           "switched", "kept"),
                         [](const auto& tested) { return std::string(tested.param); });

// The cut may lie anywhere between the write and the read.
TEST(Buffers, WrittenInTheFirstBlockAndReadInTheLastPassCuts) {
  for (const char* name : {"first_to_last", "assigned"}) {
    const Model model(name, kFolder);
    EXPECT_GE(model.legal.size(), 8U) << name;
  }
}

}  // namespace
}  // namespace pfeife
