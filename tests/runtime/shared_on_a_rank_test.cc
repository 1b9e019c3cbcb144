// A parameter that several stages of one rank share needs no reduction, and is updated when the
// last of them has its gradient in, wherever their optimizer steps stand.
#include <gtest/gtest.h>

#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using testing::largest_difference;
using testing::model_path;
using testing::run;

TEST(SharedOnARank, IsUpdatedOnceWithTheWholeGradient) {
  const Graph graph = read_pt2(model_path("tiny_shared"));
  const auto legal = legal_cuts(graph, effects_of(graph));
  const std::vector<NodeId> cuts{legal.at(legal.size() / 2)};
  const StageId first{0}, last{1};
  Schedule schedule{{{}}};
  for (const std::int64_t m : {0, 1}) {
    schedule.rows[0].push_back(forward(first, MicrobatchId{m}));
    schedule.rows[0].push_back(forward(last, MicrobatchId{m}));
  }
  for (const std::int64_t m : {0, 1}) schedule.rows[0].push_back(backward(last, MicrobatchId{m}));
  schedule.rows[0].push_back(stage_action(Op::OptimizerStep, last));  // before the others' backward
  for (const std::int64_t m : {0, 1}) schedule.rows[0].push_back(backward(first, MicrobatchId{m}));
  schedule.rows[0].push_back(stage_action(Op::OptimizerStep, first));
  const Pipeline pipeline = make_pipeline(graph, cuts, schedule, round_robin(2, 1));
  EXPECT_TRUE(pipeline.stages.tied.empty());
  const WeightSource source(model_path("tiny_shared"), 7);
  testing::RunOptions options;
  options.rank.update = true;
  options.rank.optimizer.kind = Optimizer::Sgd;
  EXPECT_LE(largest_difference(run(pipeline, source, options).parameters,
                               run(unsplit_pipeline(graph, 2), source, options).parameters),
            1e-12);
}

}  // namespace
}  // namespace pfeife
