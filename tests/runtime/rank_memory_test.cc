// What a stage lets go of while a step runs. How much a rank holds: planned_memory_test.cc.
#include <gtest/gtest.h>

#include "tests/runtime/pipelines.h"

namespace pfeife {
namespace {

using testing::Model;

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
  EXPECT_EQ(cut.alive(), 0U);
  cut.second->backward_weight(MicrobatchId{0});
}

}  // namespace
}  // namespace pfeife
