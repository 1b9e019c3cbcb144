#include "planner/cost/stages/stage_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace pfeife {
namespace {

using ::testing::ElementsAre;
using ns = Nanoseconds;

/// Four layers of 1, 2, 4, 8 ns forward; 0 -> 1 -> 2 -> 3 of 10 B each; 0 also feeds 2 and 3 with 6
/// B; the embedding (100 B) is used by layers 0 and 3.
Layers four_layers() {
  Layers layers;
  for (int l = 0; l < 4; ++l) {
    Layer layer;
    layer.times = {{ns{1 << l}, ns{2 << l}, ns{3 << l}, ns{0}}};
    layer.saved = Bytes{1};
    layer.temporary = PassBytes::same(Bytes{l});
    layers.layers.push_back(layer);
  }
  for (int l = 0; l < 3; ++l)
    layers.values.push_back({"chain", LayerId{l}, {LayerId{l + 1}}, Bytes{10}, Bytes{10}, {}});
  layers.values.push_back({"skip", LayerId{0}, {LayerId{2}, LayerId{3}}, Bytes{6}, Bytes{4}, {}});
  layers.storages.push_back({Bytes{6}, {LayerId{0}, LayerId{2}, LayerId{3}}, {LayerId{3}}, 3});
  layers.parameters.push_back(
      {"embedding", Bytes{100}, Bytes{100}, Bytes{200}, {LayerId{0}, LayerId{3}}, {ns{5}}});
  layers.parameters.push_back({"own", Bytes{30}, Bytes{30}, Bytes{60}, {LayerId{1}}, {ns{2}}});
  return layers;
}

DeviceKind device() {
  DeviceKind kind;
  kind.name = "test";
  kind.memory = Bytes{1 << 20};
  return kind;
}

TEST(StageCosts, AddsLayersAndSendsAValueOnceToEachStageThatReadsIt) {
  const Cluster cluster = uniform_cluster(2, device(), {1e9}, ns{100});  // 1 B a ns
  const StageCosts costs = stage_costs(four_layers(), {{1}}, round_robin(2, 2), cluster);
  ASSERT_EQ(costs.stages.size(), 2U);
  EXPECT_EQ(costs.stages[0].forward, ns{3});
  EXPECT_EQ(costs.stages[1].forward, ns{12});
  EXPECT_EQ(costs.stages[1].backward(), ns{60});
  // F of layer 3: 3 B beside all that is saved. B of layer 2: gradients of 10 + 4 B go back, and
  // layer 3 has let go of 1 B. I: the same; W of layer 3 takes 3 B, that of layer 2 less, because
  // the 6 B that layer 3 kept are gone.
  EXPECT_EQ(costs.stages[1].temporary, (PassBytes{Bytes{3}, Bytes{13}, Bytes{13}, Bytes{3}}));
  ASSERT_EQ(costs.pairs.size(), 1U);
  EXPECT_EQ(costs.pairs[0].bytes, Bytes{16});  // chain 10 + skip 6, though two layers read the skip
  EXPECT_EQ(costs.pairs[0].gradient_bytes, Bytes{14});
  EXPECT_EQ(costs.pairs[0].forward_time, ns{116});
  EXPECT_EQ(costs.pairs[0].backward_time, ns{114});
}

TEST(StageCosts, AStorageCountsOnceAStageAndMarksTheValue) {
  const Cluster cluster = uniform_cluster(2, device(), {1e9}, ns{100});
  const StageCosts costs = stage_costs(four_layers(), {{1}}, round_robin(2, 2), cluster);
  EXPECT_EQ(costs.stages[0].saved, Bytes{2 + 6});
  EXPECT_EQ(costs.stages[1].saved, Bytes{2 + 6});  // layers 2 and 3 save the same storage
  EXPECT_EQ(costs.stages[1].weight_saved, Bytes{6});
  ASSERT_EQ(costs.values.size(), 2U);
  EXPECT_TRUE(costs.values[1].saved_by_sender);
  EXPECT_THAT(costs.values[1].saved_by_receiver, ElementsAre(true));
  EXPECT_FALSE(costs.values[0].saved_by_sender);
}

// Stage 0 saves 8 B, of which 6 are a value that the other stage has, too; two devices share 1 B a
// ns.
TEST(StageCosts, AShareOfWhatAStageSavesByItselfIsOffloaded) {
  DeviceKind kind = device();
  const auto costs_on = [&] {
    return stage_costs(four_layers(), {{1}}, round_robin(2, 2),
                       uniform_cluster(2, kind, {1e9}, ns{100}), {.offload = {0.5, 0}});
  };
  EXPECT_THAT(message_of(costs_on), ::testing::HasSubstr("have no way to their host"));
  kind.host_link = HostLink{.bandwidth = {1e9}, .shared_by = 2};
  const StageCosts costs = costs_on();
  EXPECT_EQ(costs.stages[0].saved, Bytes{8});
  EXPECT_EQ(costs.stages[0].offloaded, Bytes{1});
  EXPECT_EQ(costs.stages[0].offload, ns{2});
  EXPECT_EQ(costs.stages[0].reload, ns{2});
  EXPECT_EQ(costs.stages[1].offloaded, Bytes{0});
  EXPECT_FALSE(costs.one_copy_engine);
  kind.host_link->half_duplex = true;
  EXPECT_TRUE(costs_on().one_copy_engine);
}

// What a recomputed stage receives is all that it saves, and goes to the host where no other stage
// of its rank has it: of stages 0 to 3, two a rank, the skip of stage 0 is read by stages 2 and 3.
// On rank 1 stage 1 has the chain's 10 B and stage 3 has 10 + 6; rank 0's stage 2 shares the skip
// with stage 0.
TEST(StageCosts, WhatARecomputedStageReceivesIsOffloaded) {
  DeviceKind kind = device();
  kind.host_link = HostLink{.bandwidth = {1e9}};
  const StageCosts costs = stage_costs(
      four_layers(), {{0, 1, 2}}, round_robin(4, 2), uniform_cluster(2, kind, {1e9}, ns{100}),
      {.stages = std::vector<bool>(4, true), .offload = std::vector<double>(4, 1)});
  EXPECT_EQ(costs.stages[0].offloaded, Bytes{0});
  EXPECT_EQ(costs.stages[1].offloaded, Bytes{10});
  EXPECT_EQ(costs.stages[2].offloaded, Bytes{10});
  EXPECT_EQ(costs.stages[3].offloaded, Bytes{16});
  EXPECT_EQ(costs.stages[3].reload, ns{16});
}

TEST(StageCosts, TiedParameterIsHeldByBothRanksAndReduced) {
  const Cluster cluster = uniform_cluster(2, device(), {1e9}, ns{100});
  const StageCosts costs = stage_costs(four_layers(), {{1}}, round_robin(2, 2), cluster);
  EXPECT_EQ(costs.stages[0].fixed(), Bytes{400 + 120});
  EXPECT_EQ(costs.stages[1].fixed(), Bytes{400});
  EXPECT_EQ(costs.stages[0].optimizer, ns{7});
  ASSERT_EQ(costs.reductions.size(), 1U);
  EXPECT_THAT(costs.reductions[0].stages, ElementsAre(StageId{0}, StageId{1}));
  // Two steps of 50 B at 1 B a ns, each after 100 ns.
  EXPECT_EQ(costs.reductions[0].time, ns{2 * (50 + 100)});
}

TEST(StageCosts, OnOneRankNothingIsSentReducedOrHeldTwice) {
  const Cluster cluster = uniform_cluster(1, device(), {1e9}, ns{100});
  const StageCosts costs = stage_costs(four_layers(), {{1}}, round_robin(2, 1), cluster);
  EXPECT_EQ(costs.pairs[0].forward_time, ns{0});
  EXPECT_TRUE(costs.reductions.empty());
  EXPECT_EQ(costs.stages[0].fixed() + costs.stages[1].fixed(), Bytes{520});
}

TEST(StageCosts, SkipsMakeAPairOfTheirOwn) {
  const Cluster cluster = uniform_cluster(4, device(), {1e9}, ns{100});
  const StageCosts costs = stage_costs(four_layers(), {{0, 1, 2}}, round_robin(4, 4), cluster);
  const StageGraph graph = stage_graph(costs);
  std::vector<std::pair<int, int>> ends;
  for (const StageGraph::Edge& edge : graph.edges)
    ends.emplace_back(edge.from.value, edge.to.value);
  EXPECT_THAT(ends, ElementsAre(std::pair{0, 1}, std::pair{0, 2}, std::pair{0, 3}, std::pair{1, 2},
                                std::pair{2, 3}));
  EXPECT_EQ(find_pair(costs, StageId{0}, StageId{3})->bytes, Bytes{6});
  EXPECT_EQ(find_pair(costs, StageId{1}, StageId{3}), nullptr);
}

TEST(StageCosts, PublishedTransferTimeReplacesTheLink) {
  Layers layers = four_layers();
  layers.values.pop_back();
  layers.storages.clear();
  for (LayerValue& value : layers.values) value.transfer_time = ns{42};
  const Cluster cluster = uniform_cluster(2, device(), {1e9}, ns{100});
  const StageCosts costs = stage_costs(layers, {{1}}, round_robin(2, 2), cluster);
  EXPECT_EQ(costs.pairs[0].forward_time, ns{42});
  EXPECT_EQ(costs.pairs[0].backward_time, ns{42});
}

// A time of nothing is a time, too; a value that has none takes the link, whatever else goes along.
TEST(StageCosts, APublishedTimeOfZeroLeavesTheLatencyOut) {
  const Cluster cluster = uniform_cluster(2, device(), {1e9}, ns{100});
  const auto times = [&](std::optional<ns> one, std::optional<ns> other) {
    Layers layers = four_layers();
    layers.values[1].transfer_time = one, layers.values[3].transfer_time = other;
    const StageCosts costs = stage_costs(layers, {{1}}, round_robin(2, 2), cluster);
    return std::pair{costs.pairs[0].forward_time.count(), costs.pairs[0].backward_time.count()};
  };
  const auto [link_forward, link_backward] = times({}, {});
  EXPECT_EQ(times(ns{0}, ns{0}), std::pair(0L, 0L));
  EXPECT_EQ(times(ns{0}, ns{7}), std::pair(7L, 7L));
  const auto [forward, backward] = times(ns{0}, {});
  EXPECT_GT(forward, 100L);
  EXPECT_LT(forward, link_forward);
  EXPECT_GT(backward, 100L);
  EXPECT_LT(backward, link_backward);
}

TEST(StageCosts, GradientsTakeTheWayBackAndOnlyThoseThatThereAre) {
  Cluster cluster = uniform_cluster(2, device(), {1e9}, ns{100});
  cluster.paths[1 * 2 + 0].latency = ns{300};
  Layers layers = four_layers();
  const auto times = [&] {
    const StageCosts costs = stage_costs(layers, {{1}}, round_robin(2, 2), cluster);
    return std::pair{costs.pairs[0].forward_time.count(), costs.pairs[0].backward_time.count()};
  };
  EXPECT_EQ(times(), std::pair(116L, 314L));
  layers.values[3].gradient_bytes = Bytes{0}, layers.values[3].has_gradient = false;
  EXPECT_EQ(times(), std::pair(116L, 310L));
  layers.values[1].bytes = layers.values[3].bytes = Bytes{0};
  EXPECT_EQ(times(), std::pair(100L, 310L));  // nothing to carry takes as long as the way is
  layers.values[1].transfer_time = ns{42}, layers.values[3].transfer_time = ns{8};
  EXPECT_EQ(times(), std::pair(50L, 42L));
  layers.values[1].gradient_bytes = Bytes{0};
  EXPECT_EQ(times(), std::pair(50L, 42L));  // a gradient of no bytes is one
  layers.values[1].has_gradient = false;
  EXPECT_EQ(times(), std::pair(50L, 0L));
}

// Stages 0 and 1 share one parameter, 2 and 3 another, 1 and 2 a third: all reduce together. What
// has no gradient is not reduced.
TEST(StageCosts, StagesTiedThroughOthersReduceTogether) {
  const Cluster cluster = uniform_cluster(4, device(), {1e9}, ns{100});
  Layers layers = four_layers();
  layers.parameters.clear();
  for (const auto& [one, other] : {std::pair{0, 1}, std::pair{2, 3}, std::pair{1, 2}})
    layers.parameters.push_back(
        {"tied", Bytes{40}, Bytes{40}, Bytes{0}, {LayerId{one}, LayerId{other}}, {ns{0}}});
  StageCosts costs = stage_costs(layers, {{0, 1, 2}}, round_robin(4, 4), cluster);
  ASSERT_EQ(costs.reductions.size(), 1U);
  EXPECT_THAT(costs.reductions[0].stages,
              ElementsAre(StageId{0}, StageId{1}, StageId{2}, StageId{3}));
  EXPECT_EQ(costs.reductions[0].bytes, Bytes{120});
  EXPECT_EQ(costs.reductions[0].time, ns{3 * 2 * (20 + 100)});  // one after another
  for (LayerParameter& parameter : layers.parameters) parameter.gradient = Bytes{0};
  costs = stage_costs(layers, {{0, 1, 2}}, round_robin(4, 4), cluster);
  EXPECT_TRUE(costs.reductions.empty());
}

TEST(StageCosts, OverheadsOfTheDeviceKindAreAdded) {
  DeviceKind kind = device();
  kind.stage_overhead = ns{1000};
  kind.iteration_overhead = ns{50};
  const Cluster cluster = uniform_cluster(1, kind, {1e9}, ns{100});
  const StageCosts costs = stage_costs(four_layers(), {{1}}, round_robin(2, 1), cluster);
  EXPECT_EQ(costs.stages[0].forward, ns{1003});
  EXPECT_EQ(costs.stages[0].backward(), ns{1000 + 6 + 9});
  EXPECT_EQ(costs.stages[0].optimizer, ns{5 + 2 + 50});
  EXPECT_EQ(costs.stages[1].optimizer, ns{0});
}

// Rank 0 holds 130 B of gradients of two parameters, rank 1 100 B of one: read for the norm, read
// again and written at half a byte a ns. 8 B go around: 2 * (4 + 100).
TEST(StageCosts, ClippingTakesWhatTheRankWithMostGradientsTakes) {
  DeviceKind kind = device();
  kind.type = DeviceType::Cpu;
  kind.kernel_overhead = ns{7};
  kind.memory_bandwidth = {1e9};
  kind.memory_efficiency = 0.5;
  Plan plan;
  plan.partition = {{1}};
  plan.placement = round_robin(2, 2);
  const auto norm = [&] {
    return stage_costs(four_layers(), plan, uniform_cluster(2, kind, {1e9}, ns{100})).norm;
  };
  EXPECT_EQ(norm(), std::nullopt);
  plan.clip_norm = 1;
  EXPECT_EQ(norm(), ns{208 + 3 * 260 + 2 * 2 * 7}) << "an operator for each parameter";
  kind.type = DeviceType::Gpu;
  EXPECT_EQ(norm(), ns{208 + 3 * 260 + 2 * 7}) << "one for all of them";
  kind.memory_bandwidth = {0};
  EXPECT_EQ(norm(), ns{208 + 2 * 7}) << "of devices whose speed nobody gave";
  plan.clip_norm = 0;
  plan.training.precision = Precision::Fp16Amp;
  EXPECT_EQ(norm(), std::nullopt) << "of a table";
  plan.cut_nodes = {3};
  EXPECT_EQ(norm(), ns{208}) << "the search for infinities is part of the optimizer's times";
}

}  // namespace
}  // namespace pfeife
