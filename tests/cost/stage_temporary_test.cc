// Memory within an action: by hand, and against a walk through the layers that keeps a list of what
// is alive.
#include "planner/cost/stages/stage_temporary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/cost/estimate/memory.h"
#include "planner/cost/layers/grouping_parts.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;

/// One stage of layers that save and weight-save so much and take so much besides.
struct Row {
  std::int64_t saved, weight_saved, temporary;
};
Layers layers_of(std::initializer_list<Row> rows) {
  Layers layers;
  for (const Row& row : rows) {
    Layer layer;
    layer.times.resize(1);
    layer.saved = Bytes{row.saved}, layer.weight_saved = Bytes{row.weight_saved};
    layer.temporary = PassBytes::same(Bytes{row.temporary});
    layers.layers.push_back(layer);
  }
  return layers;
}
/// Temporaries of the stages that layers make, by the stage of each.
std::vector<StageTemporary> temporaries(const Layers& layers,
                                        const std::vector<std::int64_t>& stages) {
  const SummedLayers sums(layers);
  std::vector<StageTemporary> found;
  for (std::size_t begin = 0, end = 0; begin < stages.size(); begin = end) {
    while (end < stages.size() && stages[end] == stages[begin]) ++end;
    found.push_back(stage_temporary(sums, begin, end));
  }
  return found;
}
std::vector<PassBytes> of_one_stage(const Layers& layers) {
  return {temporaries(layers, std::vector<std::int64_t>(layers.size(), 0)).front().kept};
}
/// In an F that keeps nothing, of the stages that these layers make.
std::vector<Bytes> unkept(const Layers& layers, const std::vector<std::int64_t>& stages) {
  std::vector<Bytes> found;
  for (const StageTemporary& stage : temporaries(layers, stages))
    found.push_back(stage.unkept_forward);
  return found;
}

// Each layer has its own and lets go of it: 30 + 4, 80 + 0, 10 + 60.
TEST(StageTemporary, OfAForwardThatKeepsNothingIsTheLargestLayers) {
  EXPECT_THAT(unkept(layers_of({{30, 0, 4}, {80, 0, 0}, {10, 0, 60}}), {0, 0, 0}),
              ElementsAre(Bytes{80}));
}

// Layer 0 makes 40 B that layer 2 reads and saves: they are there with the 80 B of layer 1. Sent to
// a stage of its own they are in place from the begin on, as whoever adds up has it, so that layer
// 0 lies 40 B below. In the stage that receives them they are there anyhow.
TEST(StageTemporary, OfAForwardThatKeepsNothingHasWhatIsStillToBeRead) {
  Layers layers = layers_of({{90, 0, 0}, {80, 0, 0}, {10, 0, 0}});
  layers.values.push_back({"v", LayerId{0}, {LayerId{2}}, Bytes{40}, Bytes{40}, {}});
  layers.storages.push_back({Bytes{40}, {LayerId{2}}, {}, 0});
  EXPECT_THAT(unkept(layers, {0, 0, 0}), ElementsAre(Bytes{90 + 40}));
  EXPECT_THAT(unkept(layers, {0, 0, 1}), ElementsAre(Bytes{90}, Bytes{10}));
  EXPECT_THAT(unkept(layers, {0, 1, 2}), ElementsAre(Bytes{90}, Bytes{80}, Bytes{10}));
  layers.layers[0].saved = Bytes{0};
  EXPECT_THAT(unkept(layers, {0, 0, 0}), ElementsAre(Bytes{80 + 40}));
}

// Two layers save 40 B that no layer hands on: they are there from the first to the second.
TEST(StageTemporary, OfAForwardThatKeepsNothingHasASharedStorageBetweenItsSavers) {
  Layers layers = layers_of({{0, 0, 90}, {0, 0, 0}, {70, 0, 0}, {0, 0, 0}, {100, 0, 0}});
  layers.storages.push_back({Bytes{40}, {LayerId{1}, LayerId{3}}, {}, {}});
  EXPECT_THAT(unkept(layers, {0, 0, 0, 0, 0}), ElementsAre(Bytes{70 + 40}));
}

// The first layer takes 100 B while the 80 B of the second are not there: 20 B above 10 + 80. In I,
// the 80 B have become 30 B; 100 - 50 + the 5 B that W needs of the first layer. In W, 100 - 30.
TEST(StageTemporary, OfAnEarlyLayerLiesBesideWhatLaterLayersHaveNotSavedYet) {
  EXPECT_THAT(of_one_stage(layers_of({{10, 5, 100}, {80, 30, 0}})),
              ElementsAre(PassBytes{Bytes{20}, Bytes{20}, Bytes{55}, Bytes{70}}));
}

TEST(StageTemporary, OfTheLastLayerLiesOnTopOfAll) {
  EXPECT_THAT(of_one_stage(layers_of({{80, 30, 0}, {10, 5, 100}})),
              ElementsAre(PassBytes{Bytes{100}, Bytes{100}, Bytes{105}, Bytes{100}}));
}

// Layer 0 makes the 40 B that layer 1 saves: they are there while layer 0 runs forward, and gone
// when it runs backward.
TEST(StageTemporary, AStorageIsThereFromTheLayerThatMakesItToTheFirstThatSavedIt) {
  Layers layers = layers_of({{0, 0, 100}, {0, 0, 0}});
  layers.values.push_back({"v", LayerId{0}, {LayerId{1}}, Bytes{40}, Bytes{40}, {}});
  layers.storages.push_back({Bytes{40}, {LayerId{1}}, {}, 0});
  EXPECT_THAT(of_one_stage(layers),
              ElementsAre(PassBytes{Bytes{100}, Bytes{60}, Bytes{60}, Bytes{100}}));
  layers.storages.back().weight_savers = {LayerId{1}};  // I leaves it, W frees it with layer 1
  EXPECT_THAT(of_one_stage(layers),
              ElementsAre(PassBytes{Bytes{100}, Bytes{60}, Bytes{100}, Bytes{60}}));
}

// Gradients that two layers of the stage make of one parameter: the later one's waits.
TEST(StageTemporary, AGradientOfASharedParameterWaitsForTheFirstUser) {
  Layers layers = layers_of({{0, 0, 10}, {0, 0, 10}, {0, 0, 10}});
  layers.parameters.push_back({"tied", Bytes{7}, Bytes{7}, {}, {LayerId{0}, LayerId{2}}, {}});
  EXPECT_EQ(of_one_stage(layers)[0].backward, Bytes{17});
}

/// The temporaries in B of the stages that these layers make.
std::vector<std::int64_t> in_backward(const Layers& layers,
                                      const std::vector<std::int64_t>& stages) {
  std::vector<std::int64_t> found;
  for (const StageTemporary& stage : temporaries(layers, stages)) {
    EXPECT_EQ(stage.kept.backward, stage.kept.input);
    found.push_back(stage.kept.backward.value);
  }
  return found;
}

// Layer 0's value is read by layer 3 alone, which leaves its gradient, 10 B, as a part of 25 B:
// they wait over layers 1 and 2 where one stage has all; 10 B wait to be sent from the stage that
// reads it, and nothing in one that lies between.
TEST(StageTemporary, AGradientWaitsWhereItsReaderIs) {
  Layers layers = layers_of({{0, 0, 0}, {0, 0, 1}, {0, 0, 1}, {0, 0, 0}});
  layers.values.push_back({"v", LayerId{0}, {LayerId{3}}, {}, Bytes{10}, {}, Bytes{25}});
  EXPECT_THAT(in_backward(layers, {0, 0, 0, 0}), ElementsAre(26));
  EXPECT_THAT(in_backward(layers, {0, 0, 1, 1}), ElementsAre(1, 11));
  EXPECT_THAT(in_backward(layers, {0, 1, 1, 2}), ElementsAre(0, 1, 10));
  layers.values[0].consumers = {LayerId{2}, LayerId{3}};  // adds up: 10 B beside layer 1
  EXPECT_THAT(in_backward(layers, {0, 0, 0, 0}), ElementsAre(26));
  layers.layers[1].temporary = PassBytes::same(Bytes{20});
  EXPECT_THAT(in_backward(layers, {0, 0, 0, 0}), ElementsAre(30));
}

// Layer 1's value is read in the next stage, which sends back a gradient of 10 B, there throughout.
// Layer 1's 20 B contain it where they were measured: 10 B are left. Where it waited as a part of
// 25 B, layer 1's 40 B contain those: 15 B.
TEST(StageTemporary, AReceivedGradientIsNoPartOfWhatALayerTakesBesides) {
  Layers layers = layers_of({{0, 0, 5}, {0, 0, 20}, {0, 0, 0}});
  layers.values.push_back({"v", LayerId{1}, {LayerId{2}}, {}, Bytes{10}, {}, {}});
  EXPECT_THAT(in_backward(layers, {0, 0, 1}), ElementsAre(10, 10));
  layers.values[0].waiting_gradient = Bytes{25};
  layers.layers[1].temporary = PassBytes::same(Bytes{40});
  EXPECT_THAT(in_backward(layers, {0, 0, 1}), ElementsAre(15, 10));
}

// Layer 1's value is read in the next stage. Of the 20 B of layer 0, which ran before that value
// was made, its gradient is no part: they are there beside it.
TEST(StageTemporary, AReceivedGradientIsNoPartOfLayersBeforeTheValueWasMade) {
  Layers layers = layers_of({{0, 0, 20}, {0, 0, 15}, {0, 0, 0}});
  layers.values.push_back({"v", LayerId{1}, {LayerId{2}}, {}, Bytes{10}, {}, {}});
  EXPECT_THAT(in_backward(layers, {0, 0, 1}), ElementsAre(20, 10));
}

/// Two nodes in one layer.
PassBytes of_one_layer(const NodeProfile& first, const NodeProfile& second) {
  Graph graph;
  graph.nodes.resize(2);
  Profile profile;
  profile.nodes = {first, second};
  return layer_temporary(graph, profile, {{0, 0}, 1}).at(0);
}

// The second node saves 40 B and weight-saves 15 B: not there yet, or gone, while the first one
// runs. What W needs of the first node is not there while the second runs I.
TEST(LayerTemporary, OfANodeLiesBesideWhatLaterNodesHaveNotSavedYet) {
  NodeProfile busy, idle;
  busy.temporary = PassBytes::same(Bytes{100});
  idle.saved = Bytes{40}, idle.weight_saved = Bytes{15};
  EXPECT_EQ(of_one_layer(busy, idle), (PassBytes{Bytes{60}, Bytes{60}, Bytes{60}, Bytes{85}}));
  EXPECT_EQ(of_one_layer(idle, busy), (PassBytes{Bytes{100}, Bytes{100}, Bytes{85}, Bytes{100}}));
}

// As with layers: what node 0 makes and node 1 saves, 40 B, is there while node 0 runs forward, and
// gone when it runs backward; kept for W, I leaves it to node 1's W.
TEST(LayerTemporary, AStorageIsThereFromTheNodeThatMakesItToTheFirstThatSavedIt) {
  Graph graph;
  graph.nodes.resize(2);
  graph.values.resize(1);
  graph.values[0].producer = NodeId{0};
  Profile profile;
  profile.nodes.resize(2);
  profile.nodes[0].temporary = PassBytes::same(Bytes{100});
  profile.storages = {{.value = ValueId{0}, .bytes = Bytes{40}, .savers = {NodeId{1}}}};
  const auto found = [&] { return layer_temporary(graph, profile, {{0, 0}, 1}).at(0); };
  EXPECT_EQ(found(), (PassBytes{Bytes{100}, Bytes{60}, Bytes{60}, Bytes{100}}));
  profile.storages[0].weight_savers = {NodeId{1}};
  EXPECT_EQ(found(), (PassBytes{Bytes{100}, Bytes{60}, Bytes{100}, Bytes{60}}));
}

/// What a stage holds while each of its layers runs, one microbatch in flight, added up from what
/// is alive: the highest of F, B, I and W above the parameters. Values that come and go are left
/// out, so the layers must not pass any between stages.
PassBytes highest_by_walk(const Layers& layers, std::size_t begin, std::size_t end) {
  const auto inside = [&](const std::vector<LayerId>& of) {
    std::vector<std::size_t> found;
    for (const LayerId l : of)
      if (l.index() >= begin && l.index() < end) found.push_back(l.index());
    return found;
  };
  PassBytes highest;
  for (std::size_t l = begin; l < end; ++l) {
    const PassBytes& t = layers.layers[l].temporary;
    PassBytes now = t;
    for (std::size_t k = begin; k < end; ++k) {
      const Layer& other = layers.layers[k];
      if (k <= l) now.forward += other.saved, now.backward += other.saved, now.input += other.saved;
      if (k <= l) now.weight += other.weight_saved;
      if (k >= l) now.input += other.weight_saved;
    }
    for (const LayerStorage& storage : layers.storages) {
      const auto savers = inside(storage.savers), for_weight = inside(storage.weight_savers);
      if (savers.empty()) continue;
      const std::size_t made =
          storage.value ? layers.values[*storage.value].producer.index() : savers.front();
      if (made <= l) now.forward += storage.bytes;
      if (savers.front() <= l) now.backward += storage.bytes;
      if (savers.front() <= l || !for_weight.empty()) now.input += storage.bytes;
      if (!for_weight.empty() && for_weight.front() <= l) now.weight += storage.bytes;
    }
    highest = larger(highest, now);
  }
  return highest;
}

TEST(StageTemporary, EqualsAWalkThroughTheLayers) {
  std::mt19937 random(1);
  const auto bytes = [&](unsigned most) {
    return Bytes{static_cast<std::int64_t>(random() % most)};
  };
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 7;
    Layers layers;
    for (std::size_t l = 0; l < count; ++l) {
      Layer layer;
      layer.times.resize(1);
      layer.saved = bytes(100), layer.weight_saved = bytes(150);
      layer.temporary = {bytes(400), bytes(400), bytes(400), bytes(400)};
      layers.layers.push_back(layer);
    }
    for (std::size_t k = 0; k < 3 && count > 1; ++k) {
      const LayerId producer{random() % (count - 1)};
      std::vector<LayerId> readers;
      for (LayerId l{producer.value + 1}; l.index() < count; ++l.value)
        if (random() % 2 == 0 || l.index() + 1 == count) readers.push_back(l);
      layers.values.push_back({"v", producer, readers, bytes(90), Bytes{0}, {}});
      std::vector<LayerId> weight;
      for (const LayerId reader : readers)
        if (random() % 2 == 0) weight.push_back(reader);
      layers.storages.push_back({layers.values.back().bytes, readers, weight, k});
    }
    const auto stages =
        stage_costs(layers, {}, round_robin(1, 1), uniform_cluster(1, DeviceKind{}, {1e9}, {}))
            .stages;
    const PassBytes walk = highest_by_walk(layers, 0, count);
    const StageCost& stage = stages[0];
    EXPECT_EQ(stage.saved + stage.temporary.forward, std::max(walk.forward, stage.saved)) << round;
    EXPECT_EQ(stage.saved + stage.temporary.backward, std::max(walk.backward, stage.saved))
        << round;
    EXPECT_EQ(stage.saved + stage.temporary.input, std::max(walk.input, stage.saved)) << round;
    EXPECT_EQ(stage.weight_saved + stage.temporary.weight,
              std::max(walk.weight, stage.weight_saved))
        << round;
  }
}

}  // namespace
}  // namespace pfeife
