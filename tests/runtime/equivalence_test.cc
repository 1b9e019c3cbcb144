// Pipelined training gives the loss and the gradients of the unsplit model.
//
// Tolerance in float64: |g - g0| <= 1e-12 |g0| for each tensor. Pipelines add the same
// microbatches' gradients in another order; N <= 8 additions and a reduction over ranks cost a few
// units of 1.1e-16.
#include <gtest/gtest.h>

#include "planner/ir/error.h"
#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using namespace testing;

class Equivalence : public ::testing::TestWithParam<const char*> {};

std::string schedule_name(const ScheduleSpec& spec) {
  return spec.family + stream_all(" D=", spec.ranks, " N=", spec.microbatches, " V=", spec.loops,
                                  " ", knobs(spec));
}

/// One accepted point of every family for D ranks and N microbatches, V in {1, 2, 3}.
std::vector<ScheduleSpec> points(std::size_t ranks, std::size_t microbatches) {
  std::vector<ScheduleSpec> found;
  for (const Family& family : families())
    for (std::size_t loops = 1; loops <= 3; ++loops) {
      ScheduleSpec spec{std::string(family.name), ranks, microbatches, loops, {}, {}};
      if (!refusal(spec)) found.push_back(spec);
    }
  return found;
}

TEST_P(Equivalence, EveryFamilyGivesTheGradientsOfTheUnsplitModel) {
  const auto path = model_path(GetParam());
  const Graph graph = read_pt2(path);
  const WeightSource source(path, 1);
  std::map<std::size_t, std::vector<NodeId>> cuts;
  for (std::size_t stages = 1; stages <= 12; ++stages) cuts[stages] = even_cuts(graph, stages);
  std::size_t tried = 0;
  for (const std::size_t microbatches : {1, 2, 3, 8}) {
    const Outcome whole = run(unsplit_pipeline(graph, microbatches), source);
    ASSERT_EQ(whole.losses.size(), microbatches);
    for (const std::size_t ranks : {1, 2, 3, 4})
      for (const ScheduleSpec& spec : points(ranks, microbatches)) {
        const Placement placement = placement_for(spec);
        const Pipeline pipeline =
            make_pipeline(graph, even_cuts(graph, placement.stages()), generate(spec), placement);
        const Outcome split = run(pipeline, source);
        EXPECT_LE(largest_difference(split.gradients, whole.gradients), 1e-12)
            << schedule_name(spec);
        for (std::size_t m = 0; m < microbatches; ++m)
          EXPECT_NEAR(split.losses.at(m), whole.losses[m], 1e-12 * std::abs(whole.losses[m]));
        EXPECT_LE(largest_difference(split.buffers, whole.buffers), 1e-12) << schedule_name(spec);
        EXPECT_EQ(split.replica_difference, 0) << schedule_name(spec);
        EXPECT_EQ(broken_edge(pipeline.tasks, measured_trace(pipeline.tasks, split.records)), "")
            << schedule_name(spec);
        ++tried;
      }
  }
  EXPECT_GT(tried, 60u);
  RecordProperty("points", static_cast<int>(tried));
}

TEST_P(Equivalence, TenStepsOfAdamStayAsClose) {
  const auto path = model_path(GetParam());
  const Graph graph = read_pt2(path);
  const WeightSource source(path, 1);
  RunOptions options{.steps = 10};
  options.rank.update = true;
  const Outcome whole = run(unsplit_pipeline(graph, 3), source, options);
  const ScheduleSpec spec{"1f1b", 3, 3, 1, {}, {}};
  const Outcome split =
      run(make_pipeline(graph, even_cuts(graph, 3), generate(spec), placement_for(spec)), source,
          options);
  // Adam divides by the root of squared gradients, which enlarges what rounding left of tiny ones.
  EXPECT_LE(largest_difference(split.parameters, whole.parameters), 1e-9);
  EXPECT_EQ(split.replica_difference, 0);
  const Outcome before = run(unsplit_pipeline(graph, 3), source);
  EXPECT_GT(largest_difference(whole.parameters, before.parameters), 1e-3) << "nothing was updated";
}

INSTANTIATE_TEST_SUITE_P(Models, Equivalence,
                         ::testing::Values("tiny_mlp", "tiny_gpt", "tiny_unet", "tiny_convnet",
                                           "tiny_shared"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace pfeife
