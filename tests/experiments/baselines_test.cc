// Baselines as other systems cut them, against all cuts there are.
#include "experiments/plans/baselines.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "experiments/plans/baseline_cuts.h"
#include "planner/io/cluster/cluster_reader.h"
#include "tests/experiments/program.h"
#include "tests/support/golden_message.h"

namespace pfeife {
namespace {

using Cuts = BaselineSettings::Cuts;

/// An embedding, twelve numbered blocks of two layers, a head that shares the embedding's table.
Layers transformer() {
  Layers layers;
  const auto add = [&](const std::string& module, std::int64_t parameters, int microseconds) {
    const Nanoseconds time = std::chrono::microseconds{microseconds};
    Layer layer{.name = "l" + std::to_string(layers.size()), .module_path = module};
    layer.times = {{time, time, time, Nanoseconds{0}}};
    const LayerId id{layers.size()};
    if (id.index() > 0)
      layers.values.push_back({"v", LayerId{id.value - 1}, {id}, Bytes{8}, Bytes{8}});
    if (parameters > 0)
      layers.parameters.push_back(
          {"p", Bytes{parameters}, Bytes{parameters}, Bytes{0}, {id}, {Nanoseconds{0}}});
    layers.layers.push_back(std::move(layer));
  };
  add("wte", 500, 1);
  for (int block = 0; block < 12; ++block) {
    add("h." + std::to_string(block) + ".attn", 40 + 7 * (block % 3), 10);
    add("h." + std::to_string(block) + ".mlp", 80, 20 + block);
  }
  add("lm_head", 0, 30);
  layers.parameters.front().users.push_back(LayerId{layers.size() - 1});
  return layers;
}

class Baselines : public ::testing::Test {
 protected:
  Baselines() : layers(transformer()), cluster(read_cluster(configs() / "clusters/3090_x8.yaml")) {
    config.devices = 4;
    config.microbatches = 8;
    config.simulation.launch_overhead = Nanoseconds{0};
  }
  Evaluation make(const BaselineSettings& settings) const {
    return baseline(settings, {&config, &layers, &cluster});
  }
  std::vector<std::int32_t> cuts(const BaselineSettings& settings) const {
    const Evaluation made = make(settings);
    EXPECT_EQ(made.reason, "");
    return made.plan.partition.cuts;
  }
  std::int64_t largest_parameters(const std::vector<std::int32_t>& cuts) const {
    const Partition partition{cuts};
    std::int64_t largest = 0;
    for (std::size_t s = 0; s < partition.stages(); ++s) {
      std::int64_t sum = 0;
      for (const LayerParameter& parameter : layers.parameters)
        if (std::ranges::any_of(parameter.users, [&](LayerId user) {
              return user.index() >= partition.begin(s) &&
                     user.index() < partition.end(s, layers.size());
            }))
          sum += parameter.bytes.value;
      largest = std::max(largest, sum);
    }
    return largest;
  }
  /// The smallest largest_parameters() of all cuts into four.
  std::int64_t fewest_parameters() const {
    std::int64_t fewest = largest_parameters({0, 1, 2});
    const auto last = static_cast<std::int32_t>(layers.size()) - 1;
    for (std::int32_t a = 0; a < last; ++a)
      for (std::int32_t b = a + 1; b < last; ++b)
        for (std::int32_t c = b + 1; c < last; ++c)
          fewest = std::min(fewest, largest_parameters({a, b, c}));
    return fewest;
  }

  Request config;
  Layers layers;
  Cluster cluster;
};

TEST_F(Baselines, EqualParametersAreTheBestOfAllCuts) {
  EXPECT_EQ(largest_parameters(cuts({.family = "1f1b", .cuts = Cuts::EqualParameters})),
            fewest_parameters());
}

// Layer 0 is the embedding, block b ends with layer 2 b + 2.
TEST_F(Baselines, EqualLayersCountNumberedBlocks) {
  EXPECT_THAT(cuts({.family = "1f1b", .cuts = Cuts::EqualLayers}),
              ::testing::ElementsAre(6, 12, 18));
  EXPECT_THAT(cuts({.family = "interleaved_1f1b", .cuts = Cuts::EqualLayers, .stages_per_rank = 3}),
              ::testing::ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22));
}

TEST_F(Baselines, CutsAtBlocksLieBetweenThem) {
  for (const Cuts kind : {Cuts::EqualTime, Cuts::EqualParameters, Cuts::Search})
    for (const std::int32_t cut : cuts({.family = "1f1b", .cuts = kind, .at_blocks = true}))
      EXPECT_EQ(cut % 2, 0) << to_string(kind);
}

TEST_F(Baselines, SearchedCutsAreNoSlowerThanAnyOther) {
  const auto step = [&](Cuts kind) {
    return step_time(make({.family = "1f1b", .cuts = kind}).estimated);
  };
  for (const Cuts kind : {Cuts::EqualTime, Cuts::EqualParameters, Cuts::EqualLayers})
    EXPECT_LE(step(Cuts::Search), step(kind)) << to_string(kind);
  EXPECT_LT(step(Cuts::Search), step(Cuts::EqualParameters)) << "the head has no parameters";
}

TEST_F(Baselines, KnobsAreThoseThatAreAskedFor) {
  const Evaluation made = make({.family = "looped",
                                .cuts = Cuts::Search,
                                .stages_per_rank = 2,
                                .loop_batch = 4,
                                .prefetch = {1}});
  EXPECT_EQ(schedule_name(made.plan.spec), "looped, V=2, loop_batch=4, prefetch=1");
  EXPECT_EQ(made.plan.found.at("by"), "searched cuts");
}

// Figure 4 of the Pfeife paper: fifteen operators of 1 forward and 2 backward on three ranks, three
// microbatches. Equal cuts take 75, the best 72, with a prefetch 69.
TEST_F(Baselines, ReferenceCutsAreThoseOfThePapersFigure) {
  layers.parameters.clear();
  layers.layers.resize(15);
  for (std::size_t l = 0; l < 15; ++l) {
    layers.layers[l].times = {{.forward = Nanoseconds{1}, .backward_input = Nanoseconds{2}}};
    layers.layers[l].saved = Bytes{1};
    layers.parameters.push_back(
        {"p", Bytes{1}, Bytes{1}, Bytes{0}, {LayerId{l}}, {Nanoseconds{0}}});
  }
  layers.values.clear(), layers.storages.clear();
  for (std::size_t l = 0; l + 1 < 15; ++l)
    layers.values.push_back({.name = "v",
                             .producer = LayerId{l},
                             .consumers = {LayerId{l + 1}},
                             .bytes = Bytes{1},
                             .gradient_bytes = Bytes{1},
                             .transfer_time = Nanoseconds{0}});
  config.devices = config.microbatches = 3;
  for (const auto& [prefetch, step] : {std::pair{0U, 72}, std::pair{1U, 69}}) {
    const Evaluation made = make({.family = "looped",
                                  .cuts = Cuts::Reference,
                                  .stages_per_rank = 1,
                                  .loop_batch = 3,
                                  .prefetch = {prefetch}});
    ASSERT_EQ(made.reason, "");
    EXPECT_EQ(step_time(made.estimated), Nanoseconds{step});
    EXPECT_EQ(made.plan.spec.prefetch, std::vector<std::size_t>{prefetch});
    EXPECT_EQ(made.plan.found.at("by"), "reference cuts");
  }
}

TEST_F(Baselines, GivenCutsMustFitTheSchedule) {
  EXPECT_THAT(cuts({.family = "gpipe", .cuts = Cuts::Given, .given_cuts = {3, 9, 20}}),
              ::testing::ElementsAre(3, 9, 20));
  EXPECT_MESSAGE(make({.family = "gpipe", .cuts = Cuts::Given, .given_cuts = {3, 9}}).reason);
  EXPECT_MESSAGE(make({.family = "gpipe", .cuts = Cuts::Given, .given_cuts = {3, 9, 90}}).reason);
}

}  // namespace
}  // namespace pfeife
