// What other pipeline frameworks refuse, hang on or silently compute wrongly, case by case. Cases
// with a file of their own: unequal and empty microbatches, sizes that change (microbatches_test),
// accumulation, evaluation, batch norm (features_test), processes that die (process_test).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/same.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Copies of a tied weight train as one, as in the unsplit model, where autograd adds up both uses.
TEST(TiedWeights, OnFirstAndLastRankGetTheSumOfBothGradientsAndStayEqual) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline({"1f1b", 4, 3, 1, {}, {}});
  const StageSlice &first = pipeline.split.stages.front(), &last = pipeline.split.stages.back();
  std::vector<ParameterId> tied;
  std::ranges::set_intersection(first.parameters, last.parameters, std::back_inserter(tied));
  ASSERT_EQ(tied.size(), 1u);
  RunOptions options{.steps = 3};
  options.rank.update = true;
  options.rank.optimizer = {.kind = Optimizer::Sgd, .learning_rate = 0.1};
  const Outcome split = run(pipeline, model.source, options);
  const Outcome whole = run(model.unsplit(3), model.source, options);
  EXPECT_EQ(split.replica_difference, 0);
  EXPECT_LE(distance(split.parameters.at(tied[0]), whole.parameters.at(tied[0])), 1e-12);
}

TEST(WeightUsedTwiceInAStage, IsExactUnderSplitBackward) {
  const Model model("tiny_shared");  // its matrix is used twice in each of six layers
  for (const ScheduleSpec& spec : {ScheduleSpec{"zb_h1", 2, 4, 1, {}, {}},
                                   {"zbv", 1, 4, 2, {}, {}},
                                   {"zb1p", 2, 4, 2, {}, {}}}) {
    const Pipeline pipeline = model.pipeline(spec);
    expect_same(pipeline, run(pipeline, model.source), run(model.unsplit(4), model.source), 1e-12,
                name_of(spec));
  }
}

TEST(IntegersAndBooleans, CrossCuts) {
  const Model model("tiny_convnet");
  const Pipeline pipeline = model.pipeline({"1f1b", 4, 3, 1, {}, {}});
  std::set<DType> types;
  for (const Crossing& c : pipeline.split.crossings)
    types.insert(model.graph.value(c.value).type.dtype);
  EXPECT_THAT(types, ::testing::IsSupersetOf({DType::Int64, DType::Bool, DType::Float32}));
  expect_same(pipeline, run(pipeline, model.source), run(model.unsplit(3), model.source), 1e-12,
              "1f1b");
}

TEST(ReceivedValue, MayNeedNoGradient) {
  const Model model("tiny_convnet");
  const Pipeline pipeline = model.pipeline({"zb_h1", 4, 3, 1, {}, {}});
  EXPECT_TRUE(std::ranges::any_of(pipeline.split.crossings, [](auto& c) { return !c.gradient; }));
  expect_same(pipeline, run(pipeline, model.source), run(model.unsplit(3), model.source), 1e-12,
              "zb_h1");
}

TEST(SkipConnections, RunUnderEveryScheduleAndGoStraightToTheirReader) {
  const Model model("tiny_unet");
  const Outcome whole = run(model.unsplit(8), model.source);
  for (const ScheduleSpec& spec : accepted_points({4}, {8}, {1, 2})) {
    const Pipeline pipeline = model.pipeline(spec);
    EXPECT_TRUE(std::ranges::any_of(
        pipeline.split.crossings, [](const Crossing& c) { return c.to.value > c.from.value + 1; }));
    expect_same(pipeline, run(pipeline, model.source), whole, 1e-12, name_of(spec));
  }
}

TEST(VShapedSchedules, RunOnCpus) {
  const Model model("tiny_mlp");
  for (const ScheduleSpec& spec : {ScheduleSpec{"zbv", 2, 4, 2, {}, {}},
                                   {"zbv", 3, 2, 2, {}, {}},
                                   {"dualpipev", 2, 4, 2, {}, {}}}) {
    const Pipeline pipeline = model.pipeline(spec);
    expect_same(pipeline, run(pipeline, model.source),
                run(model.unsplit(spec.microbatches), model.source), 1e-12, name_of(spec));
  }
}

TEST(FewerMicrobatchesThanRanks, Run) {
  const Model model("tiny_gpt");
  for (const std::size_t n : {1, 2})
    for (const ScheduleSpec& spec : accepted_points({4}, {n}, {1, 2})) {
      const Pipeline pipeline = model.pipeline(spec);
      expect_same(pipeline, run(pipeline, model.source), run(model.unsplit(n), model.source), 1e-12,
                  name_of(spec));
    }
}

// Rank 1 gets an index beyond the table, which a kernel of the middle of the step refuses.
TEST(ErrorOnOneRank, StopsAllWithRankActionAndCause) {
  const Model model("tiny_gpt");
  const Pipeline pipeline = model.pipeline({"1f1b", 3, 3, 1, {}, {}});
  std::mutex mutex;
  std::vector<std::string> said;
  const std::string thrown = message_of<std::exception>([&] {
    run_with(pipeline, model.source, RunOptions{}.rank, [&](RankPipeline& own) {
      StepInputs inputs = inputs_of(pipeline, 0, RunOptions{}.rank.placing);
      for (auto& [id, tensor] : inputs.microbatches[2])
        if (model.graph.value(id).name == "labels") tensor = tensor + 1000;
      try {
        return own.step(inputs);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        said.push_back(error.what());
        throw;
      }
    });
  });
  EXPECT_THAT(thrown, AllOf(HasSubstr("rank 2 failed at 2F2"), HasSubstr("cross_entropy"),
                            HasSubstr("out of bounds")));
  EXPECT_EQ(said.size(), 3u);
  for (const std::string& text : said) EXPECT_THAT(text, HasSubstr("rank 2 failed at 2F2"));
}

TEST(WrongDeclarations, AreRefusedBeforeTheStartByName) {
  const Model model("tiny_gpt");
  const Schedule schedule = generate({"1f1b", 3, 3, 1, {}, {}});
  const Placement placement = round_robin(3, 3);
  const auto make = [&](std::vector<NodeId> cuts, const Schedule& s) {
    return message_of<std::exception>([&] { make_pipeline(model.graph, cuts, s, placement); });
  };
  const auto cuts = model.even_cuts(3);
  EXPECT_THAT(make({cuts[0]}, schedule), HasSubstr("places 3 stages, the cuts make 2"));
  EXPECT_THAT(make({cuts[1], cuts[0]}, schedule), HasSubstr("must increase"));
  Schedule backwards = schedule;
  std::swap(backwards.rows[1].front(), backwards.rows[1].back());
  EXPECT_THAT(make(cuts, backwards), HasSubstr("1B"));
  Schedule twice = schedule;
  twice.rows[0].push_back(twice.rows[0].front());
  EXPECT_THAT(make(cuts, twice), HasSubstr("0F0"));
  // Lowered, but the gradients of the tied weight are never added up.
  Schedule untied = model.pipeline({"1f1b", 3, 3, 1, {}, {}}).schedule;
  for (auto& row : untied.rows)
    std::erase_if(row, [](const Cell& cell) {
      const auto* action = std::get_if<Action>(&cell);
      return action && action->op == Op::ReduceGrad;
    });
  EXPECT_THAT(make(cuts, untied), HasSubstr("REDUCE_GRAD"));
}

}  // namespace
}  // namespace pfeife
