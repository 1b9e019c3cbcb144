// Microbatches of any size. The loss of a step is the mean over its samples, so for a model whose
// samples do not meet (no batch norm, no dropout) any division of a batch gives the gradients of
// the batch as one microbatch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/same.h"
#include "tests/runtime/split_batch.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const Placing kDouble{.double_precision = true};

/// A batch of `samples` samples for the model.
std::map<ValueId, at::Tensor> batch_of(const Model& model, std::int64_t samples) {
  return synthetic_inputs(model.source.graph(samples), 3, MicrobatchId{0}, kDouble);
}
Outcome step_on(const Model& model, const Pipeline& pipeline,
                const std::map<ValueId, at::Tensor>& batch,
                const std::vector<std::int64_t>& sizes) {
  return run_with(pipeline, model.source, RunOptions{}.rank, [&](RankPipeline& own) {
    return own.step(split_batch(model.graph, 0, batch, sizes));
  });
}
double mean(const Outcome& outcome, const std::vector<std::int64_t>& sizes) {
  double sum = 0, samples = 0;
  for (std::size_t m = 0; m < sizes.size(); ++m) {
    sum += outcome.losses.at(m) * static_cast<double>(sizes[m]);
    samples += static_cast<double>(sizes[m]);
  }
  return sum / samples;
}
std::vector<ScheduleSpec> points(std::size_t n) {
  return {{"1f1b", 3, n, 1, {}, {}}, {"zbv", 2, n, 2, {}, {}}, {"zb_h1", 2, n, 1, {}, {}}};
}

class Microbatches : public ::testing::TestWithParam<std::string> {};

TEST_P(Microbatches, OfUnequalSizesGiveTheGradientsOfTheWholeBatch) {
  const Model model(GetParam());
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{3, 3, 2}, {1, 5, 2}, {4, 4, 3}}) {
    const std::int64_t samples = sizes[0] + sizes[1] + sizes[2];
    const auto batch = batch_of(model, samples);
    const Outcome whole = step_on(model, model.unsplit(1), batch, {samples});
    for (const ScheduleSpec& spec : points(3)) {
      const Outcome split = step_on(model, model.pipeline(spec), batch, sizes);
      EXPECT_LE(largest_difference(split.gradients, whole.gradients), 1e-12) << name_of(spec);
      EXPECT_NEAR(mean(split, sizes), whole.losses.at(0), 1e-12) << name_of(spec);
    }
  }
}

TEST_P(Microbatches, WithoutSamplesCountNothing) {
  const Model model(GetParam());
  const auto batch = batch_of(model, 2);
  const Outcome whole = step_on(model, model.unsplit(1), batch, {2});
  for (const ScheduleSpec& spec : points(4)) {
    const auto sizes = even_sizes(2, 4);
    const Outcome split = step_on(model, model.pipeline(spec), batch, sizes);
    EXPECT_LE(largest_difference(split.gradients, whole.gradients), 1e-12) << name_of(spec);
    EXPECT_NEAR(mean(split, sizes), whole.losses.at(0), 1e-12) << name_of(spec);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Microbatches,
                         ::testing::Values("tiny_mlp", "tiny_gpt", "tiny_unet", "tiny_shared"),
                         [](const auto& info) { return info.param; });

// With batch norm and dropout a division matters: the reference divides in the same way.
TEST(UnequalMicrobatches, OfAModelWithBatchNormAreThoseOneAfterAnother) {
  const Model model("tiny_convnet");
  const std::vector<std::int64_t> sizes{3, 0, 5, 2};
  const auto batch = batch_of(model, 10);
  const Outcome whole = step_on(model, model.unsplit(4), batch, sizes);
  for (const ScheduleSpec& spec : points(4)) {
    const Pipeline pipeline = model.pipeline(spec);
    expect_same(pipeline, step_on(model, pipeline, batch, sizes), whole, 1e-12, name_of(spec));
  }
}

TEST(MicrobatchSize, MayChangeFromStepToStepAndInEvaluation) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline({"interleaved_1f1b", 2, 4, 2, {}, {}});
  const auto train = [&](const Pipeline& on) {
    return run_with(on, model.source, RunOptions{}.rank, [&](RankPipeline& own) {
      for (const std::int64_t samples : {8, 4, 5})
        own.step(split_batch(model.graph, 0, batch_of(model, samples), even_sizes(samples, 4)));
      const StepInputs larger = split_batch(model.graph, 0, batch_of(model, 23), even_sizes(23, 3));
      own.evaluate(larger);
      return own.step(split_batch(model.graph, 1, batch_of(model, 12), even_sizes(12, 4)));
    });
  };
  const Outcome split = train(pipeline), whole = train(model.unsplit(4));
  EXPECT_LE(largest_difference(split.gradients, whole.gradients), 1e-12);
}

TEST(Batch, OfAnotherLengthThanTheExportIsRefused) {
  const Model model("tiny_gpt");
  auto longer = batch_of(model, 4);
  for (auto& [id, tensor] : longer) tensor = at::cat({tensor, tensor}, 1);  // twice the length
  EXPECT_THAT(message_of<std::exception>([&] {
                step_on(model, model.unsplit(2), longer, {2, 2});
              }),
              HasSubstr("only the number of samples may differ from the export"));
}

TEST(FixedExport, RefusesAnotherNumberOfSamplesWithTheRemedy) {
  Model model("tiny_gpt");
  model.graph.symbolic_batch = false;
  EXPECT_THAT(message_of<std::exception>([&] {
                step_on(model, model.unsplit(2), batch_of(model, 3), {1, 2});
              }),
              HasSubstr("needs an export whose batch size is open"));
}

}  // namespace
}  // namespace pfeife
