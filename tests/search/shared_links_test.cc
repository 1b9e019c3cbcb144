// Plans for links that are shared, timed by something that the search does not know.
#include "planner/search/choices/shared_links.h"

#include <gmock/gmock.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/search/choices/sent_time.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

/// One way for both directions between hosts {0, 1} and {2, 3}, of `rate`; the rest goes over links
/// of its own of 10 GB/s.
Cluster two_hosts(BytesPerSecond rate = {1e9}) {
  Cluster cluster = uniform_cluster(4, DeviceKind{}, {10e9}, Nanoseconds{5});
  const std::size_t shared = cluster.links.size();
  cluster.links.push_back({"between", rate});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < 4; ++b)
      if (a / 2 != b / 2) {
        Path& path = cluster.paths[a * 4 + b];
        path.links.push_back(shared);
        path.bandwidth.points = {{Bytes{1}, rate}};
      }
  return cluster;
}

// Stages 0 1 2 3 on devices 0 1 2 3. Over the link between the hosts go 1 -> 2 (600 bytes there,
// 200 back) and 0 -> 3 (100 there): 900 ns a microbatch, while 0 -> 1 takes 400 bytes at 10 GB/s.
TEST(BusiestLink, IsWhatItCarriesOverItsSpeedInAllMicrobatches) {
  const Cluster cluster = two_hosts();
  Placement placement = round_robin(4, 4);
  StageCosts costs;
  costs.stages.resize(4);
  const auto add = [&](std::size_t from, std::size_t to, std::int64_t bytes, std::int64_t back) {
    const auto time = [&](StageId a, StageId b, std::int64_t n) {
      return transfer_time(cluster.path(placement.device(a), placement.device(b)), Bytes{n});
    };
    costs.pairs.push_back({StageId{from}, StageId{to}, Bytes{bytes}, Bytes{back},
                           time(StageId{from}, StageId{to}, bytes),
                           time(StageId{to}, StageId{from}, back), back > 0});
  };
  add(0, 1, 400, 400);
  add(0, 3, 100, 0);
  add(1, 2, 600, 200);
  EXPECT_EQ(busiest_link(costs, placement, cluster, 1), Nanoseconds{900});
  EXPECT_EQ(busiest_link(costs, placement, cluster, 7), Nanoseconds{6300});
  placement.device_of_rank = {DeviceId{0}, DeviceId{2}, DeviceId{3}, DeviceId{1}};
  // Now 0 -> 1 crosses (800) and 2 -> 3 would, which send nothing; 0 -> 3 and 1 -> 2 do not.
  for (StagePair& pair : costs.pairs) {
    const Path& path = cluster.path(placement.device(pair.from), placement.device(pair.to));
    pair.forward_time = transfer_time(path, pair.bytes);
    pair.backward_time = transfer_time(path, pair.gradient_bytes);
  }
  EXPECT_EQ(busiest_link(costs, placement, cluster, 1), Nanoseconds{800});
}

// Stages 0 1 2 on ranks 0 1 0. Forward 0 -> 1 takes 5, 1 -> 2 takes 3, back 2 -> 1 takes 4 and 1 ->
// 0 nothing, in all microbatches.
TEST(FullestQueue, IsWhatItsMessagesTakeOneAfterTheOther) {
  Placement placement = round_robin(3, 2);
  StageCosts costs;
  costs.stages.resize(3);
  costs.pairs = {
      {StageId{0}, StageId{1}, Bytes{1}, Bytes{0}, Nanoseconds{5}, Nanoseconds{0}, false},
      {StageId{1}, StageId{2}, Bytes{1}, Bytes{1}, Nanoseconds{3}, Nanoseconds{4}}};
  EXPECT_EQ(fullest_queue(costs, placement, Queues::None, 3), Nanoseconds{0});
  EXPECT_EQ(fullest_queue(costs, placement, Queues::Edge, 3), Nanoseconds{3 * (5 + 4)});
  EXPECT_EQ(fullest_queue(costs, placement, Queues::Pair, 3), Nanoseconds{3 * (5 + 3 + 4)});
  placement = round_robin(3, 3);  // rank 1 has all of them
  EXPECT_EQ(fullest_queue(costs, placement, Queues::Pair, 3), Nanoseconds{3 * (3 + 4)});
  EXPECT_EQ(fullest_queue(costs, placement, Queues::Rank, 3), Nanoseconds{3 * (5 + 3 + 4)});
}

/// A random problem on two hosts, and a simulator that knows nothing but a plan's bounds and a
/// number that follows from its cuts and schedule.
struct LinkInstance {
  explicit LinkInstance(unsigned seed) : random(seed) {
    RandomShape shape;
    shape.layers = 14;
    shape.two_kinds = false;
    layers = random_layers(random, shape);
    schedules = search_set(4, 4, std::vector<std::size_t>{1, 2});
    schedules.push_back({.family = "zb_greedy", .ranks = 4, .microbatches = 4});
  }
  Problem problem() const {
    return {layers,
            cluster,
            schedules,
            {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}},
            std::vector<Bytes>(4, Bytes{1 << 20}),
            std::nullopt};
  }
  StepTime time(const Priced& plan, double contention) const {
    const Placement placement = placement_for(plan.spec);
    const StageCosts costs = stage_costs(layers, plan.partition, placement, cluster);
    std::uint64_t number = plan.spec.prefetch.size() + plan.spec.loop_batch.value_or(0);
    for (const std::int32_t cut : plan.partition.cuts)
      number = number * 31 + static_cast<std::uint64_t>(cut);
    const Nanoseconds least = std::max(plan.estimate, busiest_link(costs, placement, cluster, 4));
    const double more = contention * static_cast<double>(number % 97) / 97;
    return {plan.estimate, contention > 0
                               ? least + Nanoseconds{static_cast<std::int64_t>(
                                             more * static_cast<double>(plan.estimate.count()))}
                               : plan.estimate};
  }
  LinkSimulator simulator(double contention, std::vector<Priced>* timed = nullptr) const {
    return {[=, this](std::span<const Priced> plans) {
              std::vector<StepTime> times;
              for (const Priced& plan : plans) {
                times.push_back(time(plan, contention));
                if (timed != nullptr) timed->push_back(plan);
              }
              return times;
            },
            contention > 0 ? Links::Shared : Links::Delay};
  }

  std::mt19937 random;
  Layers layers;
  Cluster cluster = two_hosts({5e8});
  std::vector<ScheduleSpec> schedules;
};

constexpr std::size_t kLittleEffort = 5;

TEST(SharedLinks, NothingThatWasAskedForOrTimedIsFasterThanTheFirst) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const LinkInstance instance(seed);
    const Problem problem = instance.problem();
    const std::vector<Priced> known = search(problem, {.iterations = kLittleEffort}).all;
    ASSERT_FALSE(known.empty());
    std::vector<Priced> timed;
    const SharedLinksOutcome found = fastest_with_shared_links(
        problem, known, {known.back()}, {.keep = 3, .iterations = kLittleEffort},
        instance.simulator(0.5, &timed));
    ASSERT_FALSE(found.plans.empty());
    EXPECT_LE(found.plans.size(), 3u);
    EXPECT_EQ(timed.size(), found.timed);
    EXPECT_THAT(timed, ::testing::Contains(known.back()));
    const Nanoseconds best = found.plans.front().time.shared;
    for (const Priced& plan : timed) EXPECT_LE(best, instance.time(plan, 0.5).shared);
    for (const TimedPlan& plan : found.plans) {
      EXPECT_EQ(plan.time, instance.time(plan, 0.5));
      const Prices again = evaluate(instance.layers, instance.cluster, compute_only(plan),
                                    placement_for(plan.spec), plan.partition);
      EXPECT_EQ(plan.estimate, again.estimate);
      EXPECT_EQ(plan.peak_memory, again.peak_memory);
    }
  }
}

TEST(SharedLinks, NoPlanIsTimedTwice) {
  const LinkInstance instance(3);
  const Problem problem = instance.problem();
  const std::vector<Priced> known = search(problem, {.iterations = kLittleEffort}).all;
  std::vector<Priced> timed;
  fastest_with_shared_links(problem, known, {}, {.iterations = kLittleEffort},
                            instance.simulator(0.5, &timed));
  for (std::size_t i = 0; i < timed.size(); ++i)
    EXPECT_EQ(std::count(timed.begin(), timed.end(), timed[i]), 1) << i;
}

TEST(SharedLinks, TheOutcomeDoesNotDependOnThreads) {
  const LinkInstance instance(5);
  const Problem problem = instance.problem();
  const std::vector<Priced> known = search(problem, {.iterations = kLittleEffort}).all;
  std::vector<Priced> one, four;
  fastest_with_shared_links(problem, known, {}, {.iterations = kLittleEffort, .threads = 1},
                            instance.simulator(0.5, &one));
  fastest_with_shared_links(problem, known, {}, {.iterations = kLittleEffort, .threads = 4},
                            instance.simulator(0.5, &four));
  EXPECT_EQ(one, four);
}

TEST(SharedLinks, WhereTheyDoNotBindOnlyKnownPlansAreTimed) {
  const LinkInstance instance(7);
  const Problem problem = instance.problem();
  const std::vector<Priced> known = search(problem, {.iterations = kLittleEffort}).all;
  std::vector<Priced> timed;
  const SharedLinksOutcome found = fastest_with_shared_links(
      problem, known, {}, {.iterations = kLittleEffort}, instance.simulator(0, &timed));
  EXPECT_FALSE(found.links_bind);
  EXPECT_EQ(found.plans.front(), known.front());
  for (const Priced& plan : timed) EXPECT_THAT(known, ::testing::Contains(plan));
}

TEST(SharedLinks, WhereTheyBindBetterPlansAreFoundThanTheSearchKnows) {
  std::size_t better = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const LinkInstance instance(seed);
    const Problem problem = instance.problem();
    const std::vector<Priced> known = search(problem, {.iterations = kLittleEffort}).all;
    Nanoseconds best_known = Nanoseconds::max();
    for (const Priced& plan : known)
      best_known = std::min(best_known, instance.time(plan, 0.1).shared);
    const SharedLinksOutcome found = fastest_with_shared_links(
        problem, known, known, {.iterations = kLittleEffort}, instance.simulator(0.1));
    EXPECT_LE(found.plans.front().time.shared, best_known);
    better += found.plans.front().time.shared < best_known;
  }
  EXPECT_GE(better, 3u);
}

// From an effort of 10 on, what is searched for slower links is the same, and the effort is the
// budget alone.
TEST(SharedLinks, UnlessUnfinishedALargerBudgetTimesTheSamePlans) {
  std::size_t unfinished = 0, finished = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const double contention = std::array{0.02, 0.1, 0.5}[seed % 3];
    const LinkInstance instance(seed);
    const Problem problem = instance.problem();
    const std::vector<Priced> known = search(problem, {.iterations = kLittleEffort}).all;
    const auto searched = [&](std::size_t effort, std::vector<Priced>& timed) {
      return fastest_with_shared_links(problem, known, {}, {.iterations = effort},
                                       instance.simulator(contention, &timed));
    };
    std::vector<Priced> few, some, more;
    const SharedLinksOutcome short_of_budget = searched(1, few), found = searched(10, some);
    searched(1000, more);
    unfinished += short_of_budget.unfinished && few.size() < more.size();
    EXPECT_TRUE(found.unfinished || some == more) << seed;
    finished += found.links_bind && !found.unfinished;
  }
  EXPECT_GT(unfinished, 0u);
  EXPECT_GT(finished, 0u);
}

TEST(SharedLinks, OfNothingComesNothing) {
  const LinkInstance instance(0);
  const SharedLinksOutcome found =
      fastest_with_shared_links(instance.problem(), {}, {}, {}, instance.simulator(0.5));
  EXPECT_TRUE(found.plans.empty());
  EXPECT_EQ(found.timed, 0u);
}

}  // namespace
}  // namespace pfeife
