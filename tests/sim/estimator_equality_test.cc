// Under equal settings the simulator gives the estimator's trace, event for event, to the
// nanosecond; with links that are shared nothing ends earlier.
#include <memory>

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/estimate/jittered.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/ir/schedule/lower.h"
#include "planner/ir/schedule/microbatch_costs.h"
#include "planner/schedules/families.h"
#include "tests/sim/random_costs.h"
#include "tests/sim/sim_test.h"

namespace pfeife {
namespace {

class SimulatorAndEstimator : public testing::SimulatorTest {};

constexpr std::size_t kRanks[] = {1, 2, 3, 4, 8};
constexpr std::size_t kMicrobatches[] = {1, 2, 5, 8, 16};
const std::vector<std::size_t> kLoops = {1, 2, 3};

/// Everything one comparison needs.
struct Case {
  std::string name;
  StageCosts costs;
  Placement placement;
  DependencyGraph graph;
  Nanoseconds launch{0};

  SimulationJob job(const Cluster& cluster) const {
    return {.name = name,
            .graph = &graph,
            .costs = &costs,
            .placement = &placement,
            .cluster = &cluster,
            .launch_overhead = launch,
            .trace = true};
  }
};
using Cases = std::vector<std::unique_ptr<Case>>;

std::string describe(const ScheduleSpec& spec, const Semantics& semantics) {
  return spec.family + " D=" + std::to_string(spec.ranks) +
         " N=" + std::to_string(spec.microbatches) + " V=" + std::to_string(spec.stages_per_rank) +
         " " + knobs(spec) + " queues " + to_string(semantics.queues) +
         (semantics.blocking ? " blocking" : "");
}

/// A case a queue setting for the point, with new random costs.
void add_cases(const ScheduleSpec& spec, std::mt19937& random, const Cluster& cluster, Links links,
               Cases& cases) {
  StageCosts costs =
      testing::random_costs(random, spec.stages(), random() % 2 == 0, random() % 2 == 0);
  const Placement placement = placement_for(spec);
  for (StageCost& stage : costs.stages) {
    if (spec.slices > 1 || cases.size() % 3 > 0) break;
    stage.offloaded = Bytes{1}, stage.offload = stage.forward / 2, stage.reload = stage.forward;
    costs.one_copy_engine = cases.size() % 2 == 0;
  }
  if (links == Links::Shared) testing::take_times_from(cluster, placement, costs);
  if (spec.slices == 1 && links == Links::Delay && costs.last.stages.empty() && random() % 2 == 0) {
    std::vector<MicrobatchScale> scales;  // microbatches that differ
    for (std::size_t m = 0; m < spec.microbatches; ++m)
      scales.push_back({0.5 * static_cast<double>(1 + random() % 5), 1});
    costs = with_microbatches(std::move(costs), scales, std::vector<double>{0.6});
  }
  const Schedule lowered = lower(generate(spec), costs, placement);
  for (const Semantics semantics : {Semantics{Queues::None, links}, Semantics{Queues::Edge, links},
                                    Semantics{Queues::Pair, links}, Semantics{Queues::Rank, links},
                                    Semantics{Queues::Pair, links, true}}) {
    const Nanoseconds launch{random() % 2 == 0 ? 0 : 7};
    cases.push_back(std::make_unique<Case>(
        Case{describe(spec, semantics), costs, placement,
             dependencies(lowered, stage_graph(costs), placement, semantics), launch}));
  }
}

std::vector<SimulationResult> simulate(const Cases& cases, const Cluster& cluster) {
  std::vector<SimulationJob> jobs;
  for (const auto& c : cases) jobs.push_back(c->job(cluster));
  return simulate_all(jobs);
}

/// Equal but for the source.
void expect_equal(const Cases& cases, const Cluster& cluster) {
  const auto results = simulate(cases, cluster);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = *cases[i];
    Trace expected = std::get<Trace>(estimate(c.graph, c.costs, {.launch_overhead = c.launch}));
    expected.source = TraceSource::Simulated;
    ASSERT_TRUE(results[i].trace) << c.name;
    EXPECT_TRUE(*results[i].trace == expected) << c.name;
    EXPECT_EQ(results[i].step_time, step_time(expected)) << c.name;
  }
}

TEST_F(SimulatorAndEstimator, AgreeAtEveryAcceptedPointOfEveryFamilyAndQueueSetting) {
  std::mt19937 random(2024);
  const Cluster cluster = uniform_cluster(8, DeviceKind{}, {1e9}, Nanoseconds{100});
  std::size_t points = 0;
  for (const std::size_t ranks : kRanks)
    for (const std::size_t microbatches : kMicrobatches) {
      Cases cases;
      for (const ScheduleSpec& spec : search_set(ranks, microbatches, kLoops)) {
        add_cases(spec, random, cluster, Links::Delay, cases);
        ++points;
      }
      expect_equal(cases, cluster);
    }
  EXPECT_GT(points, 500u);
}

// Both draw a task's factor from (seed, repetition, task), so the runs agree one by one;
// percentiles then do, too.
TEST_F(SimulatorAndEstimator, AgreeRunByRunWhenDurationsVary) {
  std::mt19937 random(11);
  const Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{100});
  const Jitter jitter{.cv = 0.2, .seed = 9, .drift = 0.1};
  constexpr std::size_t kRepetitions = 20;
  for (const auto& [ranks, microbatches] : {std::pair{1, 4}, {2, 5}, {4, 8}}) {
    Cases cases;
    for (const ScheduleSpec& spec : search_set(static_cast<std::size_t>(ranks),
                                               static_cast<std::size_t>(microbatches), kLoops))
      add_cases(spec, random, cluster, Links::Delay, cases);
    std::vector<SimulationJob> jobs;
    for (const auto& c : cases) {
      jobs.push_back(c->job(cluster));
      jobs.back().launch_overhead = Nanoseconds{0};
      jobs.back().jitter = jitter;
      jobs.back().repetitions = kRepetitions;
    }
    const auto results = simulate_all(jobs);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = *cases[i];
      EXPECT_EQ(jittered_estimates(c.graph, c.costs, c.placement, cluster, jitter, kRepetitions),
                results[i].repetitions)
          << c.name;
    }
  }
}

TEST_F(SimulatorAndEstimator, AgreeOnRandomGraphs) {
  const Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{100});
  std::mt19937 random(7);
  Cases cases;
  for (int i = 0; i < 100; ++i) {
    testing::GraphByHand hand(cluster, 4, Links::Delay);
    std::vector<std::size_t> last(4);
    for (int rank = 0; rank < 4; ++rank)
      last[static_cast<std::size_t>(rank)] = hand.compute(rank, Nanoseconds{random() % 100});
    while (hand.graph.size() < 200) {
      std::vector<std::size_t> after;
      for (std::size_t n = random() % 4; n > 0; --n) after.push_back(random() % hand.graph.size());
      const std::size_t rank = random() % 4;
      if (random() % 3 == 0) {
        hand.transfer(static_cast<int>(rank), static_cast<int>(random() % 4),
                      Bytes{static_cast<std::int64_t>(random() % 1000)}, after);
      } else {
        after.push_back(last[rank]);
        last[rank] = hand.compute(static_cast<int>(rank), Nanoseconds{random() % 1000}, after);
      }
    }
    cases.push_back(std::make_unique<Case>(Case{"graph " + std::to_string(i), hand.costs,
                                                hand.placement, hand.graph, Nanoseconds{0}}));
  }
  expect_equal(cases, cluster);
}

// Flows get at most the speed they have alone, so by induction along the edges no event can end
// before the one of the contention-free run; half a nanosecond is rounding.
TEST_F(SimulatorAndEstimator, SharedLinksNeverEndAnythingEarlier) {
  std::mt19937 random(5);
  const Cluster cluster =
      read_cluster(std::string(PFEIFE_SOURCE_DIR) + "/configs/clusters/3090_x8.yaml");
  Cases cases;
  for (const ScheduleSpec& spec : search_set(8, 8, kLoops))
    if (random() % 4 == 0) add_cases(spec, random, cluster, Links::Shared, cases);
  const auto results = simulate(cases, cluster);
  std::size_t later = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = *cases[i];
    const Trace alone = std::get<Trace>(estimate(c.graph, c.costs, {.launch_overhead = c.launch}));
    for (std::size_t t = 0; t < alone.events.size(); ++t)
      ASSERT_GE(results[i].trace->events[t].end + Nanoseconds{1}, alone.events[t].end) << c.name;
    later += results[i].step_time > step_time(alone);
  }
  EXPECT_GT(later, cases.size() / 4) << "the cluster is meant to be contended";
}

}  // namespace
}  // namespace pfeife
