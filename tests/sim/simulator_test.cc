// The simulator's door: deadlocks, jitter, repetitions, pools; figures of shared links are in
// shared_links_test.cc.
#include <gmock/gmock.h>

#include "planner/ir/basics/error.h"
#include "tests/sim/sim_test.h"

namespace pfeife {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::GraphByHand;
using ::testing::HasSubstr;
class Simulator : public testing::SimulatorTest {
 protected:
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {1e9}, Nanoseconds{100});
};

TEST_F(Simulator, AGraphWithoutTasksEndsAtOnce) {
  const GraphByHand hand(cluster, 2, Links::Shared);
  EXPECT_THAT(hand.ends(), ElementsAre());
  EXPECT_EQ(simulate_all({}).size(), 0u);
  SimulationJob job = hand.job();
  for (const bool trace : {false, true}) {
    job.trace = trace;
    EXPECT_EQ(simulate_all(std::vector{job})[0].step_time, Nanoseconds{0});
  }
}

TEST_F(Simulator, EventsSayWhatTheyWaitedFor) {
  GraphByHand hand(cluster, 2, Links::Shared);
  const std::size_t f = hand.compute(0, Nanoseconds{50});
  const std::size_t g = hand.compute(1, Nanoseconds{400});
  const std::size_t sent = hand.transfer(0, 1, Bytes{1000}, {f});
  hand.compute(1, Nanoseconds{5}, {g, sent});
  const auto answer = simulate(hand.graph, hand.costs, hand.placement, cluster,
                               {.launch_overhead = Nanoseconds{7}});
  const Trace& trace = std::get<Trace>(answer);
  EXPECT_EQ(trace.source, TraceSource::Simulated);
  EXPECT_EQ(trace.ranks, 2u);
  EXPECT_EQ(trace.events[f].end, Nanoseconds{57});
  EXPECT_EQ(trace.events[f].launch, Nanoseconds{7});
  EXPECT_FALSE(trace.events[f].waited_for);
  EXPECT_EQ(trace.events[sent].start, Nanoseconds{57});
  EXPECT_EQ(trace.events[sent].end, Nanoseconds{57 + 100 + 1000});
  EXPECT_EQ(trace.events[sent].launch, Nanoseconds{0});
  EXPECT_EQ(trace.events[3].posted, Nanoseconds{1157});
  EXPECT_EQ(trace.events[3].waited_for, sent);
  EXPECT_EQ(step_time(trace), Nanoseconds{1157 + 7 + 5});
}

TEST_F(Simulator, ADeadlockIsAnAnswerThatNamesTheBlockedTasks) {
  GraphByHand hand(cluster, 2, Links::Shared);
  const std::size_t free = hand.compute(0, Nanoseconds{50});
  const std::size_t stuck = hand.compute(1, Nanoseconds{50}, {free});
  hand.compute(1, Nanoseconds{50}, {stuck});
  hand.wait_for_itself(stuck);
  const auto answer = simulate(hand.graph, hand.costs, hand.placement, cluster);
  EXPECT_THAT(std::get<Deadlock>(answer).blocked, ElementsAre(TaskId{1}, TaskId{2}));
  SimulationJob job = hand.job();
  job.jitter.cv = 0.1;
  job.repetitions = 3;
  job.trace = false;
  GraphByHand fine(cluster, 2, Links::Shared);
  fine.compute(0, Nanoseconds{9});
  const auto results = simulate_all(std::vector{job, fine.job()}, {.workers = 1});
  EXPECT_EQ(results[0].deadlock, std::get<Deadlock>(answer));
  EXPECT_TRUE(results[0].repetitions.empty());
  EXPECT_FALSE(results[0].trace);
  EXPECT_EQ(results[1].step_time, Nanoseconds{9})
      << "a deadlock leaves the engine fit for the next run";
}

/// Some compute and contended transfers, different for every seed.
GraphByHand random_graph(const Cluster& cluster, unsigned seed) {
  GraphByHand hand(cluster, 4, Links::Shared);
  std::uint64_t state = seed + 1;
  const auto pick = [&](std::uint64_t n) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % n;
  };
  std::vector<std::size_t> last(4, ~std::size_t{0});
  for (int i = 0; i < 60; ++i) {
    const std::size_t rank = pick(4), peer = pick(4);
    std::vector<std::size_t> after;
    if (last[rank] != ~std::size_t{0}) after.push_back(last[rank]);
    last[rank] = hand.compute(static_cast<int>(rank),
                              Nanoseconds{static_cast<std::int64_t>(pick(5000))}, after);
    const std::size_t sent =
        hand.transfer(static_cast<int>(rank), static_cast<int>(peer),
                      Bytes{static_cast<std::int64_t>(pick(9000))}, {last[rank]});
    last[peer] = hand.compute(
        static_cast<int>(peer), Nanoseconds{10},
        last[peer] == ~std::size_t{0} ? std::vector{sent} : std::vector{last[peer], sent});
  }
  return hand;
}

TEST_F(Simulator, ResultsDoNotDependOnTheNumberOfWorkers) {
  std::vector<GraphByHand> graphs;
  for (unsigned seed = 0; seed < 20; ++seed) graphs.push_back(random_graph(cluster, seed));
  std::vector<SimulationJob> jobs;
  for (const GraphByHand& graph : graphs) {
    jobs.push_back(graph.job());
    jobs.back().jitter = {.cv = 0.1, .seed = 11};
    jobs.back().repetitions = 40;  // three processes a job
    jobs.back().trace = jobs.size() % 2 == 0;
  }
  std::size_t reported = 0;
  const auto progress = [&](std::size_t done, std::size_t total) {
    EXPECT_GT(done, reported);
    EXPECT_EQ(total, 20u * 41);
    reported = done;
  };
  const auto one = simulate_all(jobs, {.workers = 1, .progress = progress});
  EXPECT_EQ(reported, 20u * 41);
  EXPECT_TRUE(simulate_all(jobs, {.workers = 2}) == one);
  EXPECT_TRUE(simulate_all(jobs, {.workers = 7}) == one);
  // Alone in a fresh process it is the same again.
  const SimulationJob& job = jobs[3];
  const auto alone = simulate(*job.graph, *job.costs, *job.placement, cluster);
  EXPECT_EQ(std::get<Trace>(alone), one[3].trace);
  const auto varied = simulate(*job.graph, *job.costs, *job.placement, cluster,
                               {.jitter = job.jitter, .repetition = 21});
  EXPECT_EQ(step_time(std::get<Trace>(varied)), one[3].repetitions[21]);
}

TEST_F(Simulator, JobsOnDifferentClustersShareAWorker) {
  const Cluster slow = uniform_cluster(4, DeviceKind{}, {0.5e9}, Nanoseconds{0});
  GraphByHand a(cluster, 2, Links::Shared), b(slow, 2, Links::Shared);
  a.transfer(0, 1, Bytes{1000});
  b.transfer(0, 1, Bytes{1000});
  const auto results = simulate_all(std::vector{a.job(), b.job(), a.job()}, {.workers = 1});
  EXPECT_EQ(results[0].step_time, Nanoseconds{1100});
  EXPECT_EQ(results[1].step_time, Nanoseconds{2000});
  EXPECT_EQ(results[2].step_time, Nanoseconds{1100});
}

TEST_F(Simulator, JitterVariesComputeAndTransfersButNotTheRest) {
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.compute(0, Nanoseconds{1'000'000});
  hand.transfer(0, 1, Bytes{1'000'000});
  hand.transfer(1, 0, Bytes{0});
  hand.graph.slots.push_back(
      {TaskKind::Optimizer, {stage_action(Op::OptimizerStep, StageId{0})}, {}});
  hand.costs.stages[0].optimizer = Nanoseconds{777};
  hand.graph.tasks.push_back({TaskKind::Optimizer,
                              3,
                              RankId{1},
                              RankId{1},
                              0,
                              0,
                              stage_action(Op::OptimizerStep, StageId{0}),
                              {}});
  hand.graph.edge_begin.push_back(0);
  const auto answer =
      simulate(hand.graph, hand.costs, hand.placement, cluster,
               {.launch_overhead = Nanoseconds{50}, .jitter = {.cv = 0.2, .seed = 3}});
  const auto& events = std::get<Trace>(answer).events;
  const JitterSource source({.cv = 0.2, .seed = 3}, 0);
  EXPECT_EQ(events[0].end,
            Nanoseconds{50} + source.vary(Nanoseconds{1'000'000}, 0, TaskKind::Compute));
  EXPECT_EQ(events[1].end,
            Nanoseconds{100} + source.vary(Nanoseconds{1'000'000}, 1, TaskKind::Transfer));
  EXPECT_EQ(events[2].end, Nanoseconds{100}) << "the latency does not vary";
  EXPECT_EQ(events[3].end, Nanoseconds{827});
  EXPECT_NE(events[0].end, Nanoseconds{1'000'050});
  EXPECT_NE(events[1].end, Nanoseconds{1'000'100});
}

TEST_F(Simulator, WithoutVariationThereAreNoRepetitions) {
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.compute(0, Nanoseconds{9});
  SimulationJob job = hand.job();
  job.repetitions = 3;
  const SimulationResult result = simulate_all(std::vector{job})[0];
  EXPECT_EQ(result.step_time, Nanoseconds{9});
  EXPECT_TRUE(result.repetitions.empty());
}

TEST_F(Simulator, QuantilesAreOfTheRepetitions) {
  SimulationResult result;
  result.step_time = Nanoseconds{5};
  EXPECT_EQ(result.quantile(0.95), Nanoseconds{5});
  for (int i = 100; i > 0; --i) result.repetitions.emplace_back(i);
  EXPECT_EQ(result.quantile(0), Nanoseconds{1});
  EXPECT_EQ(result.quantile(0.05), Nanoseconds{5});
  EXPECT_EQ(result.quantile(0.5), Nanoseconds{50});
  EXPECT_EQ(result.quantile(0.95), Nanoseconds{95});
  EXPECT_EQ(result.quantile(1), Nanoseconds{100});
}

TEST_F(Simulator, AFailureNamesTheExperiment) {
  GraphByHand hand(cluster, 2, Links::Shared);
  hand.compute(0, Nanoseconds{-1});
  try {
    simulate_all(std::vector{hand.job("case 7, gpipe")});
    FAIL();
  } catch (const RuntimeFault& fault) {
    EXPECT_THAT(fault.what(),
                AllOf(HasSubstr("simulation of case 7, gpipe failed"), HasSubstr("negative")));
  }
  try {
    simulate_all(std::vector{hand.job("")});
    FAIL();
  } catch (const RuntimeFault& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("simulation failed"));
  }
}

TEST_F(Simulator, AnIncompleteJobIsRefused) {
  GraphByHand hand(cluster, 2, Links::Shared);
  const auto refused = [&](const auto& spoil) {
    SimulationJob job = hand.job();
    spoil(job);
    EXPECT_THROW(simulate_all(std::vector{job}), InternalError);
  };
  refused([](SimulationJob& job) { job.graph = nullptr; });
  refused([](SimulationJob& job) { job.costs = nullptr; });
  refused([](SimulationJob& job) { job.placement = nullptr; });
  refused([](SimulationJob& job) { job.cluster = nullptr; });
  hand.placement.device_of_rank[1] = DeviceId{4};
  refused([](SimulationJob&) {});
  hand.placement.device_of_rank.pop_back();
  refused([](SimulationJob&) {});
}

}  // namespace
}  // namespace pfeife
