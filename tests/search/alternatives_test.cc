// Choices beside cuts and schedule: the device of each rank, and problems that do the same work in
// other ways. Against brute force: every order of the devices, every cut.
#include "planner/search/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "planner/cost/evaluate.h"
#include "planner/io/cluster_reader.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/device_orders.h"
#include "planner/search/device_search.h"
#include "planner/search/segment_bound.h"
#include "planner/search/work_bound.h"
#include "tests/search/as_told.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

using Order = std::vector<DeviceId>;

SearchOptions small() { return {.iterations = 30}; }

/// Two speeds of devices, two of links, two sizes of memory.
struct Instance {
  Layers layers;
  Cluster cluster;
  std::vector<ScheduleSpec> schedules;
  std::vector<Bytes> memory_limit;

  Order devices() const {
    Order all;
    for (std::size_t d = 0; d < cluster.devices(); ++d)
      all.emplace_back(static_cast<std::int64_t>(d));
    return all;
  }
  Problem problem() const {
    return {layers, cluster, schedules, devices(), memory_limit, std::nullopt};
  }
};
Instance random_instance(std::mt19937& random, std::size_t ranks) {
  Instance instance;
  RandomShape shape;
  shape.layers = 5 + random() % 4;
  shape.illegal_cuts = false;
  instance.layers = random_layers(random, shape);
  instance.cluster = random_cluster(random, ranks, true);
  Cluster& cluster = instance.cluster;
  const std::size_t bridge = random() % ranks;  // joins two devices faster than the others are
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b)
      if (a != b && a / 2 != bridge && a / 2 == b / 2) {
        cluster.paths[a * ranks + b].latency = Nanoseconds{0};
        cluster.paths[a * ranks + b].bandwidth.points.front().rate = {1e12};
      }
  const std::size_t microbatches = 1 + random() % 4;
  for (int k = 0; k < 2; ++k)
    instance.schedules.push_back(random_spec(random, ranks, microbatches, {1}));
  const auto small_memory = static_cast<std::int64_t>(1500 + random() % 3000);
  const bool tight = random() % 2 == 0;
  for (std::size_t d = 0; d < ranks; ++d)
    instance.memory_limit.emplace_back(
        tight ? small_memory * (cluster.kind_of_device[d] == 0 ? 1 : 2) : std::int64_t{1} << 30);
  if (random() % 2 == 0)  // one way faster than the other
    cluster.paths[(random() % ranks) * ranks + random() % ranks].latency = Nanoseconds{0};
  return instance;
}

template <class Visit>
void for_each_order(Order order, const Visit& visit) {
  std::ranges::sort(order);
  do visit(order);
  while (std::ranges::next_permutation(order).found);
}

TEST(DeviceOrders, HaveEveryEstimateThatAnyOrderHas) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const Instance instance = random_instance(random, 4);
    const ScheduleSpec& spec = instance.schedules[0];
    const Schedule schedule = generate(spec);
    Partition cuts;
    for (std::int32_t c = 0; cuts.stages() < spec.stages(); ++c) cuts.cuts.push_back(c);
    const auto estimate = [&](const Order& order) {
      Placement placement = placement_for(spec);
      placement.device_of_rank = order;
      return evaluate(instance.layers, instance.cluster, schedule, placement, cuts).estimate;
    };
    std::set<Nanoseconds> all, listed;
    for_each_order(instance.devices(), [&](const Order& order) { all.insert(estimate(order)); });
    const auto orders = device_orders(instance.cluster, instance.devices(), 24);
    ASSERT_TRUE(orders);
    for (const Order& order : *orders) listed.insert(estimate(order));
    EXPECT_EQ(listed, all) << round;
  }
}

TEST(DeviceOrders, OfPairsThatAreBridgedAreTheWaysToPairRanks) {
  // Eight devices in four bridged pairs: the orders that differ are the perfect matchings of the
  // eight ranks, 7 x 5 x 3 x 1.
  const Cluster cluster = read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/3090_x8.yaml");
  Order devices;
  for (int d = 0; d < 8; ++d) devices.emplace_back(d);
  const auto orders = device_orders(cluster, devices, 20'000);
  ASSERT_TRUE(orders);
  EXPECT_EQ(orders->size(), 105U);
  EXPECT_EQ(orders->front(), devices);
  // One node of equal devices on a switch has one order; so many of an uneven one are not listed.
  const Cluster even = read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/a100_sxm4_40gb_x8.yaml");
  EXPECT_EQ(device_orders(even, devices, 1)->size(), 1U);
  EXPECT_FALSE(device_orders(cluster, devices, 1000));
}

TEST(DeviceSearch, FindsTheBestOrderAndItsBoundHoldsForAll) {
  std::mt19937 random(11);
  int feasible = 0, proven = 0;
  for (int round = 0; round < 40; ++round) {
    const Instance instance = random_instance(random, 3);
    const Problem problem = instance.problem();
    std::optional<Nanoseconds> best;
    for_each_order(instance.devices(), [&](const Order& order) {
      const SearchOutcome outcome = search(with_devices(problem, order), small());
      if (!outcome.plans.empty())
        best = std::min(best.value_or(Nanoseconds::max()), outcome.plans[0].estimate);
    });
    const BestDevices found = search_devices({problem}, small(), search);
    const SearchOutcome& outcome = found.found.outcome;
    ASSERT_EQ(outcome.plans.empty(), !best.has_value()) << round;
    proven += !best && outcome.infeasible && outcome.infeasible->proven;
    if (!best) continue;
    ++feasible;
    EXPECT_EQ(outcome.plans[0].estimate, *best) << round;
    EXPECT_LE(outcome.bound->time, *best) << round;
    // The plan is one of the order that is said to be best.
    const Problem& of_plan = found.problems[found.found.best];
    expect_as_told(of_plan, outcome.plans[0]);
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_LE(outcome.plans[0].peak_memory[r],
                instance.memory_limit[of_plan.device_of_rank[r].index()]);
  }
  EXPECT_GT(feasible, 15);
  EXPECT_GT(proven, 2);
}

// Of two ranks all orders are listed, of four hardly ever: then there is a proof of any order. None
// of them can be raised above the best plan of any order.
TEST(DeviceSearch, IsProvenToTheJudge) {
  std::mt19937 random(31);
  int all_listed = 0, of_any = 0, by_shares = 0, whole = 0, tried = 0;
  for (int round = 0; round < 40; ++round) {
    Instance instance = random_instance(random, round % 2 == 0 ? 2 : 4);
    if (round % 4 == 1)  // devices of one kind are far slower
      for (Layer& layer : instance.layers.layers)
        for (Nanoseconds LayerTimes::*work :
             {&LayerTimes::forward, &LayerTimes::backward_input, &LayerTimes::backward_weight})
          layer.times[1].*work *= 20;
    SearchOptions options = small();
    options.certificate = true;
    const BestDevices devices = search_devices({instance.problem()}, options, search);
    if (devices.found.outcome.plans.empty()) continue;
    const Nanoseconds best = devices.found.outcome.plans[0].estimate;
    std::int64_t proven = Certificate::kNothingFits;
    const auto judge = [&](const Certificate& certificate, std::optional<Nanoseconds> plan) {
      ASSERT_EQ(tool::certify(certificate).refusal, "") << round;
      proven = std::min(proven, certificate.bound);
      if (!plan) return;
      Certificate more = certificate;
      more.bound = plan->count() + 1;
      ASSERT_NE(tool::certify(more).refusal, "") << round;
    };
    ++tried;
    if (devices.given[0].all_listed) {
      ++all_listed;
      for (std::size_t k = 0; k < devices.problems.size(); ++k) {
        ASSERT_TRUE(devices.found.all[k].certificate);
        const SearchOutcome own = search(devices.problems[k], small());
        judge(*devices.found.all[k].certificate,
              own.plans.empty() ? std::nullopt : std::optional(own.plans[0].estimate));
      }
    } else {
      ++of_any;
      ASSERT_TRUE(devices.given[0].certificate);
      EXPECT_TRUE(devices.given[0].certificate->any_devices);
      judge(*devices.given[0].certificate, best);
      by_shares += !devices.given[0].certificate->proofs[0].shares.empty();
    }
    EXPECT_LE(proven, best.count());
    whole += proven >= devices.found.outcome.bound->time.count();
  }
  EXPECT_GT(all_listed, 8);
  EXPECT_GT(of_any, 8);
  EXPECT_GT(by_shares, 0);
  EXPECT_GT(whole, tried * 3 / 4);
}

TEST(WorkBounds, AreBelowEveryPlanOfEveryOrderOfTheDevices) {
  std::mt19937 random(13);
  double closest = 0;
  for (int round = 0; round < 120; ++round) {
    const Instance instance = random_instance(random, 1 + random() % 3);
    const Problem problem = instance.problem();
    const RelaxedDevices relaxed(problem);
    for (const ScheduleSpec& spec : instance.schedules) {
      const double any_devices =
          std::max(shared_work_bound(problem, spec.microbatches), one_microbatch_bound(problem));
      for_each_order(instance.devices(), [&](const Order& order) {
        Problem one = with_devices(problem, order);
        one.schedules = {spec};
        for (std::size_t r = 0; r < order.size(); ++r)
          ASSERT_LE(one.memory_limit[r], relaxed.problem().memory_limit[r]) << round;
        const double bound = std::max(any_devices, work_bound(one));
        Placement placement = placement_for(spec);
        placement.device_of_rank = order;
        for_each_partition(instance.layers, spec.stages(), [&](const Partition& cuts) {
          const auto time = [&](const Layers& layers, const Cluster& cluster) {
            return evaluate(layers, cluster, generate(spec), placement, cuts).estimate;
          };
          const Nanoseconds plan = time(instance.layers, instance.cluster);
          ASSERT_LE(bound, static_cast<double>(plan.count())) << round;
          ASSERT_LE(time(relaxed.problem().layers, relaxed.problem().cluster), plan) << round;
          closest = std::max(closest, bound / static_cast<double>(plan.count()));
        });
      });
    }
  }
  EXPECT_GT(closest, 0.99);  // on one device the work is nearly all
}

TEST(DeviceSearch, FindsTheBridgesOfAScrambledClusterAgain) {
  // Eight devices of which 0-5, 1-3, 2-7 and 4-6 are bridged, in place of 0-1, 2-3, 4-5 and 6-7.
  const Cluster sorted = read_cluster(PFEIFE_SOURCE_DIR "/configs/clusters/3090_x8.yaml");
  const std::vector<std::size_t> was{0, 2, 4, 3, 6, 1, 7, 5};
  Cluster scrambled = sorted;
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b)
      scrambled.paths[a * 8 + b] = sorted.paths[was[a] * 8 + was[b]];
  Layers layers;
  for (int l = 0; l < 32; ++l) {
    Layer layer;
    layer.name = "l" + std::to_string(l);
    layer.times = {{Nanoseconds{100'000}, Nanoseconds{100'000}, Nanoseconds{100'000}, {}}};
    layers.layers.push_back(layer);
    if (l < 31) {
      // Every other eighth of the model makes much that the next one reads.
      const Bytes bytes{l % 8 == 3 ? 40'000'000 : 4'000'000};
      layers.values.push_back({"v", LayerId{l}, {LayerId{l + 1}}, bytes, bytes, {}});
    }
  }
  Order devices;
  for (int d = 0; d < 8; ++d) devices.emplace_back(d);
  const std::vector<ScheduleSpec> schedules{{"1f1b", 8, 8, 1, {}, {}}};
  const std::vector<Bytes> limit(8, Bytes{std::int64_t{1} << 34});
  const SearchOutcome reference =
      search({layers, sorted, schedules, devices, limit, std::nullopt}, {});
  const Problem problem{layers, scrambled, schedules, devices, limit, std::nullopt};
  const BestDevices found = search_devices({problem}, {}, search);
  EXPECT_EQ(found.found.outcome.plans[0].estimate, reference.plans[0].estimate);
  EXPECT_GT(search(problem, {}).plans[0].estimate, reference.plans[0].estimate);
  const Order& order = found.problems[found.found.best].device_of_rank;
  for (std::size_t r = 0; r < 8; r += 2)
    EXPECT_EQ(was[order[r].index()] / 2, was[order[r + 1].index()] / 2) << r;
  EXPECT_LE(found.found.outcome.bound->time, reference.plans[0].estimate);
}

TEST(Alternatives, GiveTheBestOfAllProblemsAndABoundOfAll) {
  std::mt19937 random(17);
  for (int round = 0; round < 40; ++round) {
    const Instance a = random_instance(random, 2), b = random_instance(random, 2),
                   c = random_instance(random, 2);
    const std::vector<Problem> problems{a.problem(), b.problem(), c.problem()};
    std::optional<Nanoseconds> best;
    for (const Problem& problem : problems)
      if (const SearchOutcome outcome = search(problem, small()); !outcome.plans.empty())
        best = std::min(best.value_or(Nanoseconds::max()), outcome.plans[0].estimate);
    const BestAlternative found = search_alternatives(problems, small(), search);
    ASSERT_EQ(found.outcome.plans.empty(), !best.has_value()) << round;
    if (!best) continue;
    EXPECT_EQ(found.outcome.plans[0].estimate, *best) << round;
    EXPECT_LE(found.outcome.bound->time, *best) << round;
    EXPECT_EQ(why_not(found, found.best), "");
    for (std::size_t i = 0; i < problems.size(); ++i) {
      EXPECT_LE(found.outcome.bound->time, found.all[i].bound) << round;
      EXPECT_EQ(why_not(found, i).empty(), i == found.best) << round;
    }
  }
}

// A search may take another choice of recomputed stages than the one before: what it proves without
// is nothing that holds for plans with.
TEST(Alternatives, MixNoBoundsOfPlansThatMayRecomputeOtherStages) {
  std::mt19937 random(29);
  int changed = 0;
  for (int round = 0; round < 60; ++round) {
    Instance a = random_instance(random, 2);
    for (Layer& layer : a.layers.layers) layer.saved.value *= 3;
    const Instance b = a;
    std::map<const Problem*, int> searches;
    SearchOptions options = small();
    options.certificate = true;
    const std::vector<Problem> problems{a.problem(), b.problem()};
    const BestAlternative found = search_alternatives(
        problems, options, [&](const Problem& problem, const SearchOptions& of_search) {
          Problem recomputing = problem;
          if (++searches[&problem] == 2) recomputing.recompute = Recompute::Choose;
          return search(recomputing, of_search);
        });
    if (found.outcome.plans.empty()) continue;
    EXPECT_EQ(found.outcome.recompute, found.all[found.best].recompute);
    for (std::size_t i = 0; i < 2; ++i) {
      const AlternativeOutcome& one = found.all[i];
      if (!one.searched || !one.plan) continue;
      Problem allowed = problems[i];
      allowed.recompute = one.recompute;
      const SearchOutcome best = search(allowed, small());
      ASSERT_FALSE(best.plans.empty());
      EXPECT_LE(one.bound, best.plans[0].estimate) << round;
      ASSERT_TRUE(one.certificate);
      EXPECT_TRUE(one.certificate->recompute == one.recompute ||
                  one.certificate->recompute == Recompute::Choose);
      changed += one.recompute == Recompute::Choose;
    }
  }
  EXPECT_GT(changed, 20);
}

// Every problem has a certificate, searched or not; together they prove the bound, and none of them
// can be raised above the best plan of its own problem.
TEST(Alternatives, AreAllProvenToTheJudge) {
  std::mt19937 random(23);
  int whole = 0, less = 0, unsearched = 0, built = 0;
  for (int round = 0; round < 60; ++round) {
    Instance instances[3] = {random_instance(random, 2), random_instance(random, 2),
                             random_instance(random, 2)};
    std::vector<Problem> problems;
    for (Instance& one : instances) {
      if (round % 3 == 0)
        one.schedules.push_back({"zb_greedy", 2, one.schedules.front().microbatches, 1, {}, {}});
      problems.push_back(one.problem());
    }
    SearchOptions options = small();
    options.certificate = true;
    const BestAlternative found = search_alternatives(problems, options, search);
    if (found.outcome.plans.empty()) continue;
    built += found.outcome.plans[0].order.has_value();
    std::int64_t least = Certificate::kNothingFits;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      unsearched += !found.all[i].searched;
      ASSERT_TRUE(found.all[i].certificate) << round;
      Certificate certificate = *found.all[i].certificate;
      least = std::min(least, certificate.bound);
      ASSERT_EQ(tool::certify(certificate).refusal, "") << round << " " << i;
      const SearchOutcome own = search(problems[i], small());
      if (own.plans.empty()) continue;
      certificate.bound = own.plans[0].estimate.count() + 1;
      ASSERT_NE(tool::certify(certificate).refusal, "") << round << " " << i;
    }
    ++(least < found.outcome.bound->time.count() ? less : whole);
  }
  EXPECT_GT(whole, 25);
  EXPECT_GT(unsearched, 10);
  EXPECT_GT(built, 3);
  EXPECT_LT(less, whole);
}

TEST(Alternatives, KeepTheBetterOfTwoSearchesOfAProblem) {
  // The second search of each problem, with all of the effort, ends at a slower plan than the
  // first.
  std::mt19937 random(19);
  int kept = 0;
  for (int round = 0; round < 20; ++round) {
    const Instance a = random_instance(random, 2), b = random_instance(random, 2);
    const std::vector<Problem> problems{a.problem(), b.problem()};
    std::map<const Problem*, int> searches;
    std::map<const Problem*, Nanoseconds> first;
    const BestAlternative found = search_alternatives(
        problems, {.certificate = true}, [&](const Problem& problem, const SearchOptions& options) {
          SearchOutcome outcome = search(problem, options);
          if (outcome.plans.empty()) return outcome;
          if (++searches[&problem] == 1)
            first[&problem] = outcome.plans[0].estimate;
          else
            for (PlannedSchedule& plan : outcome.plans) plan.estimate += Nanoseconds{5};
          return outcome;
        });
    if (found.outcome.plans.empty()) continue;
    const Problem* const best = &problems[found.best];
    EXPECT_EQ(found.outcome.plans[0].estimate, first.at(best)) << round;
    EXPECT_EQ(found.all[found.best].plan->estimate, first.at(best)) << round;
    if (searches.at(best) < 2) continue;
    ++kept;
    // What the second search proves is kept.
    ASSERT_TRUE(found.outcome.certificate) << round;
    EXPECT_LE(found.outcome.certificate->bound, first.at(best).count()) << round;
  }
  EXPECT_GT(kept, 10);
}

}  // namespace
}  // namespace pfeife
