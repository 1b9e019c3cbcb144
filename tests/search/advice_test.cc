// What would help, against brute force over all schedules and cuts of tiny problems.
#include "planner/search/choices/advice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/estimate/evaluate.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

/// Some cuts of some schedule fit the first `ranks` devices.
bool something_fits(const Layers& layers, const Cluster& cluster,
                    const std::vector<ScheduleSpec>& specs, const std::vector<Bytes>& limit) {
  bool found = false;
  for (const ScheduleSpec& spec : specs)
    for_each_partition(layers, spec.stages(), [&](const Partition& cuts) {
      if (found) return;
      const Placement placement = placement_for(spec);
      const Prices plan = evaluate(layers, cluster, generate(spec), placement, cuts);
      const std::vector<Bytes> room(limit.begin(), limit.begin() + std::ptrdiff_t(spec.ranks));
      found =
          fits(plan.peak_memory, room) || fits(received_late(plan, placement).peak_memory, room);
    });
  return found;
}

/// The smallest limit, equal for all, under which something fits the first ranks.
Bytes smallest_limit(const Layers& layers, const Cluster& cluster,
                     const std::vector<ScheduleSpec>& specs) {
  Bytes least{1'000'000};
  for (const ScheduleSpec& spec : specs)
    for_each_partition(layers, spec.stages(), [&](const Partition& cuts) {
      const Prices plan = evaluate(layers, cluster, generate(spec), placement_for(spec), cuts);
      least = std::min(least, *std::ranges::max_element(plan.peak_memory));
    });
  return least;
}

/// A model of which half the microbatch takes half of everything but parameters.
Layers halved(Layers layers) {
  for (Layer& layer : layers.layers) {
    for (LayerTimes& t : layer.times) t.forward /= 2, t.backward_input /= 2, t.backward_weight /= 2;
    layer.saved.value /= 2, layer.weight_saved.value /= 2;
    PassBytes& temporary = layer.temporary;
    for (Bytes* bytes :
         {&temporary.forward, &temporary.backward, &temporary.input, &temporary.weight})
      bytes->value /= 2;
  }
  for (LayerValue& value : layers.values) value.bytes.value /= 2, value.gradient_bytes.value /= 2;
  for (LayerStorage& storage : layers.storages) storage.bytes.value /= 2;
  layers.microbatch_size /= 2;
  return layers;
}

TEST(Advice, AgreesWithBruteForceOnTinyProblems) {
  constexpr std::size_t kDevices = 6, kMicrobatches = 4;
  std::size_t devices_help = 0, nothing_helps = 0, sizes_help = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    Layers layers = random_layers(random, {.layers = 8, .illegal_cuts = false, .two_kinds = false});
    layers.microbatch_size = 2;
    const Layers half = halved(layers);
    const Cluster cluster = random_cluster(random, kDevices, false);
    const auto schedules = [](std::size_t ranks, std::size_t microbatches, bool) {
      return search_set(ranks, microbatches, std::vector<std::size_t>{1},
                        std::vector<std::string>{"gpipe", "1f1b"});
    };
    Surroundings around;
    around.schedules = schedules;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(kDevices); ++d)
      around.devices.emplace_back(d);
    const std::size_t enough = 3 + random() % 5;  // 7: no number of devices helps
    const Bytes limit = smallest_limit(layers, cluster,
                                       schedules(std::min(enough, kDevices), kMicrobatches, false));
    around.memory_limit.assign(kDevices, enough > kDevices ? limit - Bytes{1} : limit);
    around.layers = [&](std::int64_t size) { return size == 1 ? &half : nullptr; };
    const Problem problem{layers,
                          cluster,
                          schedules(2, kMicrobatches, false),
                          {around.devices.begin(), around.devices.begin() + 2},
                          {around.memory_limit.begin(), around.memory_limit.begin() + 2},
                          std::nullopt};
    if (!search(problem, {.keep = 1}).plans.empty()) continue;
    for (const Remedy& remedy : remedies(problem, around, {})) {
      if (remedy.change == "recomputing stages") continue;  // recompute_test.cc
      const bool smaller = remedy.microbatch_size == 1;
      const Layers& changed = smaller ? half : layers;
      const auto fits = [&](std::size_t ranks) {
        return something_fits(changed, cluster, schedules(ranks, remedy.microbatches, false),
                              around.memory_limit);
      };
      EXPECT_EQ(remedy.plan.has_value(), fits(remedy.devices)) << seed << " " << remedy.change;
      if (!remedy.plan) {
        ++nothing_helps;
        continue;
      }
      ++(smaller ? sizes_help : devices_help);
      EXPECT_EQ(static_cast<std::size_t>(remedy.microbatch_size) * remedy.microbatches,
                2 * kMicrobatches);
      if (!smaller && remedy.devices > 3) {
        EXPECT_FALSE(fits(remedy.devices - 1)) << seed;
      }
      const ScheduleSpec& spec = remedy.plan->spec;
      Prices plan =
          evaluate(changed, cluster, generate(spec), placement_for(spec), remedy.plan->partition);
      if (remedy.plan->receives == Receives::AtNeed)
        plan = received_late(plan, placement_for(spec));
      EXPECT_EQ(plan.estimate, remedy.plan->estimate);
      EXPECT_EQ(plan.peak_memory, remedy.plan->peak_memory);
      for (const Bytes peak : plan.peak_memory) EXPECT_LE(peak, around.memory_limit.front());
    }
  }
  EXPECT_GT(devices_help, 5u);
  EXPECT_GT(sizes_help, 5u);
  EXPECT_GT(nothing_helps, 5u);
}

TEST(Advice, AModelOfTooFewLayersNeedsFewerDevices) {
  std::mt19937 random(3);
  Layers layers = random_layers(random, {.layers = 4, .illegal_cuts = false, .two_kinds = false});
  layers.layers[1].no_cut_after = "in-place pair";
  EXPECT_EQ(most_stages(layers), 3u);
  const Cluster cluster = random_cluster(random, 6, false);
  const auto schedules = [](std::size_t ranks, std::size_t microbatches, bool) {
    return search_set(ranks, microbatches, std::vector<std::size_t>{1},
                      std::vector<std::string>{"1f1b"});
  };
  std::vector<DeviceId> devices;
  for (std::int64_t d = 0; d < 6; ++d) devices.emplace_back(d);
  const std::vector<Bytes> limit(6, Bytes{std::int64_t{1} << 40});
  const Problem problem{layers,
                        cluster,
                        schedules(4, 2, false),
                        {devices.begin(), devices.begin() + 4},
                        {limit.begin(), limit.begin() + 4},
                        std::nullopt};
  const std::vector<Remedy> tried = remedies(problem, {schedules, devices, limit, {}}, {});
  ASSERT_EQ(tried.size(), 1u);
  EXPECT_EQ(tried[0].change, "3 devices instead of 4");
  ASSERT_TRUE(tried[0].plan);
  EXPECT_EQ(tried[0].plan->partition.cuts, (std::vector<std::int32_t>{0, 2}));
}

// Twenty devices of one byte each: nothing ever fits. The numbers of devices double their distance
// from the two there are; of six samples a microbatch, every part that divides them is tried, of
// sixteen none below an eighth.
TEST(Advice, TriesEveryDistanceAndEveryPartInItsOrder) {
  std::mt19937 random(5);
  Layers layers = random_layers(random, {.layers = 30, .illegal_cuts = false, .two_kinds = false});
  const Cluster cluster = uniform_cluster(20, DeviceKind{}, {1e9}, Nanoseconds{0});
  std::vector<std::pair<std::size_t, std::size_t>> asked;  // devices, microbatches
  std::vector<std::int64_t> sizes;
  Surroundings around;
  around.schedules = [&](std::size_t ranks, std::size_t microbatches, bool) {
    asked.emplace_back(ranks, microbatches);
    return std::vector<ScheduleSpec>{{"1f1b", ranks, microbatches, 1, {}, {}}};
  };
  for (std::int64_t d = 0; d < 20; ++d) around.devices.emplace_back(d);
  around.memory_limit.assign(20, Bytes{1});
  around.layers = [&](std::int64_t size) {
    sizes.push_back(size);
    return &layers;
  };
  const Problem problem{layers,
                        cluster,
                        {{"gpipe", 2, 4, 1, {}, {}}},
                        {DeviceId{0}, DeviceId{1}},
                        {Bytes{1}, Bytes{1}},
                        std::nullopt};
  layers.microbatch_size = 6;
  const std::vector<Remedy> tried = remedies(problem, around, {});
  EXPECT_EQ(
      asked,
      (std::vector<std::pair<std::size_t, std::size_t>>{
          {2, 4}, {3, 4}, {4, 4}, {6, 4}, {10, 4}, {18, 4}, {20, 4}, {2, 8}, {2, 12}, {2, 24}}));
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 2, 1}));
  ASSERT_EQ(tried.size(), 4U);  // what was tried last of each kind
  EXPECT_EQ(tried[0].change, "recomputing stages");
  EXPECT_EQ(tried[2].change, "20 devices instead of 2");
  EXPECT_EQ(tried[3].change, "24 microbatches of 1 instead of 4 of 6");
  for (const Remedy& remedy : tried) {
    ASSERT_TRUE(remedy.lack);
    EXPECT_GT(remedy.lack->needed, remedy.lack->available);
    EXPECT_EQ(remedy.lack->available, Bytes{1});
  }
  sizes.clear();
  layers.microbatch_size = 16;
  remedies(problem, around, {});
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{8, 4, 2}));
}

TEST(Advice, NamesOtherSchedulesIfThoseListedKeepTooManyMicrobatches) {
  // Four equal layers of 100 bytes kept; 4 microbatches: gpipe keeps 4 on each of 2 ranks, 1f1b 2.
  Layers layers;
  for (int l = 0; l < 4; ++l) {
    Layer layer;
    layer.name = std::to_string(l);
    layer.times = {{Nanoseconds{10}, Nanoseconds{10}, Nanoseconds{10}, Nanoseconds{0}}};
    layer.saved = Bytes{100};
    layers.layers.push_back(layer);
  }
  const Cluster cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0});
  const auto schedules = [](std::size_t ranks, std::size_t microbatches, bool all) {
    const std::vector<std::string> names{"gpipe"}, wide{"gpipe", "1f1b"};
    return search_set(ranks, microbatches, std::vector<std::size_t>{1}, all ? wide : names);
  };
  const std::vector<DeviceId> devices{DeviceId{0}, DeviceId{1}};
  const std::vector<Bytes> limit{Bytes{400}, Bytes{400}};
  const Problem problem{layers, cluster, schedules(2, 4, false), devices, limit, std::nullopt};
  EXPECT_TRUE(search(problem, {}).infeasible->proven);
  const std::vector<Remedy> tried = remedies(problem, {schedules, devices, limit, {}}, {});
  ASSERT_EQ(tried.size(), 2u);
  ASSERT_TRUE(tried.front().plan);
  EXPECT_EQ(tried.front().change, "recomputing stages");
  EXPECT_EQ(tried.front().plan->activations.stages, (std::vector<bool>{true, true}));
  ASSERT_TRUE(tried.back().plan);
  EXPECT_EQ(tried.back().plan->spec.family, "1f1b");
  EXPECT_EQ(tried.back().plan->peak_memory.front(), Bytes{400});
}

}  // namespace
}  // namespace pfeife
