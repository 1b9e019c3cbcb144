// Memory of a rank that trains, as the planner predicts it from a profile, against the count of the
// allocator. One rank with several stages: the process's count is the rank's, and nothing depends
// on when messages come.
#include <gtest/gtest.h>

#include "planner/cost/grouping.h"
#include "planner/cost/memory.h"
#include "planner/cost/stage_costs.h"
#include "planner/ir/lower.h"
#include "runtime/counting_allocator.h"
#include "runtime/profiler.h"
#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using testing::Model;

Layers profiled(const Model& model, const std::string& name) {
  ProfileOptions options;
  options.training = {Precision::Fp32, Optimizer::Adam, model.graph.microbatch_size};
  options.device_kind = "core";
  options.repetitions = 1;
  options.microbatches = 1;
  return layers_from_graph(
      model.graph,
      {profile_model(model.graph, WeightSource(testing::model_path(name), 0), options).profile});
}

/// Cuts after about equally many layers, and the nodes after which they lie.
struct EvenCuts {
  EvenCuts(const Layers& layers, std::size_t stages) {
    std::vector<std::int32_t> legal;
    for (std::size_t l = 0; l + 1 < layers.size(); ++l)
      if (layers.layers[l].no_cut_after.empty()) legal.push_back(static_cast<std::int32_t>(l));
    for (std::size_t s = 1; s < stages; ++s)
      partition.cuts.push_back(legal.at(s * legal.size() / stages));
    for (const std::int32_t cut : partition.cuts) {
      NodeId last{0};
      for (std::int32_t l = 0; l <= cut; ++l)
        for (const NodeId n : layers.layers[static_cast<std::size_t>(l)].nodes)
          last = std::max(last, n);
      nodes.push_back(last);
    }
  }
  Partition partition;
  std::vector<NodeId> nodes;
};

/// Bytes by which the second step's peak is above what is there between steps.
Bytes measured(const Model& model, const Pipeline& pipeline) {
  testing::RunOptions options;
  options.rank.placing = {};
  options.rank.update = true;
  Bytes above{0};
  testing::run_with(pipeline, model.source, options.rank, [&](RankPipeline& own) {
    own.step(testing::inputs_of(pipeline, 0, options.rank.placing));
    const StepInputs inputs = testing::inputs_of(pipeline, 1, options.rank.placing);
    const Bytes before = allocated_bytes().now;
    reset_allocation_peak();
    auto records = own.step(inputs);
    above = allocated_bytes().peak - before;
    return records;
  });
  return above;
}

bool has_split_backward(const Schedule& schedule) {
  bool found = false;
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      for_each_action(cell, [&](const Action& a) { found = found || a.op == Op::BackwardInput; });
  return found;
}

// A transformer. Models of other kinds come within 8 %, mostly above: their temporaries are those
// of the whole graph, where long skips wait over stages that do not see them.
TEST(PlannedMemory, IsThatOfTheAllocatorWithinTwoPercent) {
  count_allocations();
  const std::string name = "tiny_gpt";
  const Model model(name);
  const Layers layers = profiled(model, name);
  const Cluster cluster = uniform_cluster(1, DeviceKind{}, {1e9}, {});
  std::size_t split = 0;
  for (const ScheduleSpec& spec : testing::accepted_points({1}, {3}, {1, 2, 3})) {
    const Placement placement = placement_for(spec);
    const EvenCuts cuts(layers, placement.stages());
    const StageCosts costs = stage_costs(layers, cuts.partition, placement, cluster);
    const Schedule schedule = generate(spec);
    const MemoryCurve curve =
        memory(lower(schedule, costs, placement), RankId{0}, costs, placement);
    const Bytes found =
        measured(model, make_pipeline(model.graph, cuts.nodes, schedule, placement));
    const Bytes planned = curve.peak() - curve.fixed;
    const auto share = [&](Bytes bytes) {
      return static_cast<double>(bytes.value) / static_cast<double>((curve.fixed + found).value);
    };
    EXPECT_NEAR(share(planned), share(found), 0.02)
        << testing::name_of(spec) << ": " << to_string(planned) << " planned, " << to_string(found)
        << " found, besides " << to_string(curve.fixed);
    split += has_split_backward(schedule) ? 1 : 0;
  }
  EXPECT_GT(split, 0U);
}

/// tiny_gpt in two stages, the second of which has received a microbatch.
struct CutInTwo {
  CutInTwo(const char* last_of_first, bool split_backward) : model("tiny_gpt") {
    const auto cut = std::ranges::find(model.graph.nodes, last_of_first, &Node::name);
    const NodeId last{cut - model.graph.nodes.begin()};
    split = split_graph(model.graph, effects, std::span(&last, 1));
    const std::vector<StageId> both{StageId{0}, StageId{1}};
    tensors = load_tensors(model.graph, split, both, model.source, {});
    GraphStage first(model.graph, effects, split, both[0], tensors, turns, {.training = false});
    second = std::make_unique<GraphStage>(model.graph, effects, split, both[1], tensors, turns,
                                          StageOptions{.split_backward = split_backward});
    first.begin(inputs);
    second->begin(inputs);
    message = first.forward(MicrobatchId{0}, {});
    for (at::Tensor& value : message.at(0)) {
      value = value.clone();  // arrived: not the sender's own
      storages.emplace_back(value.storage().getWeakStorageImpl());
    }
  }
  std::size_t alive() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(storages, [](const auto& storage) { return !storage.expired(); }));
  }

  Model model;
  std::vector<NodeEffects> effects = effects_of(model.graph);
  GraphSplit split;
  RankTensors tensors;
  RandomTurns turns;
  StepInputs inputs{0, {synthetic_inputs(model.graph, 0, MicrobatchId{0}, {})}, {1.0}};
  std::unique_ptr<GraphStage> second;
  PerStage message;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages;
};

// Cut between a linear layer and the sum that it goes into: the sum's backward needs neither of its
// two operands, and the layer behind it needs the sum, which the stage makes itself.
TEST(ReceivedValues, AreFreedWithTheMessageIfNothingOfTheForwardKeepsThem) {
  CutInTwo cut("linear_3", /*split_backward=*/false);
  cut.second->forward(MicrobatchId{0}, cut.message);
  EXPECT_EQ(cut.alive(), 2U);
  cut.message.clear();
  EXPECT_EQ(cut.alive(), 0U);
  const PerStage back = cut.second->backward(MicrobatchId{0}, {});
  for (const at::Tensor& gradient : back.at(0)) EXPECT_TRUE(gradient.defined());
}

// Cut between query, key, value and the attention, which keeps them until its backward is done; the
// linear layer behind it keeps the attention's result until W, and nothing more.
TEST(ReceivedValues, AreFreedByIIfWNeedsOnlyWhatWasMadeOfThem) {
  CutInTwo cut("linear_4", /*split_backward=*/true);
  cut.second->forward(MicrobatchId{0}, cut.message);
  cut.message.clear();
  EXPECT_EQ(cut.alive(), 1U);
  cut.second->backward_input(MicrobatchId{0}, {});
  EXPECT_EQ(cut.second->weights_pending(), 1U);
  EXPECT_EQ(cut.alive(), 0U);
  cut.second->backward_weight(MicrobatchId{0});
}

}  // namespace
}  // namespace pfeife
