// Plans that are chosen by what is simulated.
#include "experiments/plans/simulated_choice.h"

#include <gtest/gtest.h>

#include "experiments/plans/plan_case.h"
#include "sim/simulator.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

/// Hosts of two devices, whose ways out are shared, of random speeds; some links carry both
/// directions.
Cluster random_hosts(std::mt19937& random, std::size_t devices) {
  Cluster cluster = random_cluster(random, devices, false);
  cluster.kinds.resize(1);
  const auto rate = [&] { return BytesPerSecond{static_cast<double>(1 + random() % 30) * 2e8}; };
  const bool half_duplex = random() % 3 == 0;
  cluster.links.clear();
  const auto add = [&](const std::string& name) {  // ways out and in
    const std::size_t out = cluster.links.size();
    cluster.links.push_back({name + ".up", rate()});
    if (!half_duplex) cluster.links.push_back({name + ".down", rate()});
    return std::pair{out, cluster.links.size() - 1};
  };
  std::vector<std::pair<std::size_t, std::size_t>> slots, hosts;
  for (std::size_t d = 0; d < devices; ++d) slots.push_back(add("slot" + std::to_string(d)));
  for (std::size_t h = 0; 2 * h < devices; ++h) hosts.push_back(add("host" + std::to_string(h)));
  const Nanoseconds latency{random() % 100};
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      Path path{.links = {slots[a].first}, .latency = latency, .bandwidth = {}};
      if (a / 2 != b / 2)
        path.links.insert(path.links.end(), {hosts[a / 2].first, hosts[b / 2].second});
      path.links.push_back(slots[b].second);
      double narrowest = 1e15;
      for (const std::size_t link : path.links)
        narrowest = std::min(narrowest, cluster.links[link].bandwidth.value);
      path.bandwidth.points = {{Bytes{1}, {narrowest}}};
      cluster.paths[a * devices + b] = path;
    }
  return cluster;
}

class SimulatedChoice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!simulator_available()) GTEST_SKIP() << "built without SimGrid";
  }
  /// As the program does it.
  static EvaluatedCase computed(const CaseInputs& inputs) {
    EvaluatedCase evaluated = plan_case(inputs, {}, 5, 1);
    simulate_cases(std::span(&evaluated, 1), 1);
    return evaluated;
  }
};

TEST_F(SimulatedChoice, NoPlanIsSimulatedSlowerThanABaselineOfItsTable) {
  std::size_t compared = 0, slower_by_estimate = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.layers = 12 + random() % 8;
    const Layers layers = random_layers(random, shape);
    CaseConfig config;
    config.name = "seed " + std::to_string(seed);
    config.devices = 2 + 2 * (random() % 2);
    config.microbatches = 2 + random() % 6;
    Cluster cluster = random_hosts(random, config.devices);
    cluster.kinds[0].memory =
        Bytes{random() % 2 == 0 ? std::int64_t{1} << 30
                                : static_cast<std::int64_t>(4000 + random() % 6000)};
    config.plan.iterations = 1 + random() % 2;
    config.baselines = {{"gpipe"},      {"1f1b"}, {"interleaved_1f1b"},
                        {"looped_bfs"}, {"zbv"},  {"zb_greedy"}};
    config.simulation.launch_overhead = Nanoseconds{random() % 20};
    config.simulation.queues = static_cast<Queues>(random() % 4);
    config.select_by = SelectBy::Simulate;
    const EvaluatedCase found = computed({&config, &layers, &cluster});
    const Evaluation& planned = found.planned[found.chosen];
    for (const Evaluation& baseline : found.baselines) {
      if (!baseline.fits()) continue;
      ASSERT_TRUE(planned.fits()) << config.name;
      EXPECT_LE(step_time(*planned.simulated), step_time(*baseline.simulated))
          << config.name << ", " << baseline.name;
      ++compared;
      slower_by_estimate +=
          step_time(*found.planned.front().simulated) > step_time(*baseline.simulated);
    }
  }
  EXPECT_GT(compared, 15u);
  EXPECT_GT(slower_by_estimate, 0u) << "links that bind nowhere show nothing";
}

// A plan that came from a baseline is named as the searched point that it is, so that the proof of
// the bound speaks of it: looped without knobs is looped with the first of its prefetches.
TEST_F(SimulatedChoice, EveryPlanIsOfAScheduleThatItsBoundCovers) {
  std::size_t compared = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    RandomShape shape;
    shape.layers = 8 + random() % 4;
    const Layers layers = random_layers(random, shape);
    CaseConfig config;
    config.devices = 2;
    config.microbatches = 2 + random() % 6;
    Cluster cluster = random_hosts(random, config.devices);
    cluster.kinds[0].memory = Bytes{std::int64_t{1} << 30};
    config.plan.families = {"looped", "looped_bfs"};
    config.plan.stages_per_rank = {1, 2};
    config.plan.iterations = 1;
    config.baselines = {{"looped"}, {"looped_bfs"}};
    config.select_by = SelectBy::P95;
    const EvaluatedCase found = computed({&config, &layers, &cluster});
    for (const Evaluation& plan : found.planned) {
      if (!plan.fits()) continue;
      ++compared;
      EXPECT_NE(std::ranges::find(plan.plan.bound->schedules, plan.plan.spec),
                plan.plan.bound->schedules.end())
          << plan.plan.spec.family << " " << knobs(plan.plan.spec);
    }
  }
  EXPECT_GT(compared, 20u);
}

}  // namespace
}  // namespace pfeife
