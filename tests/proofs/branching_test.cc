// Models whose stages need not wait for their neighbours: bounds against brute force over all cuts
// and all orders of the actions, and certificates before the judge.
#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/bound/proof_record.h"
#include "planner/search/bound/work_bound.h"
#include "planner/search/orders/built_orders.h"
#include "planner/search/proof/branch_and_bound.h"
#include "tests/proofs/all_orders.h"
#include "tests/proofs/branching_layers.h"
#include "tests/proofs/one_by_one.h"
#include "tests/search/random_problem.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

/// A random model with branches, devices, and a placement of which any order is meant.
struct Branching {
  explicit Branching(std::mt19937& random) {
    static constexpr std::array<std::array<std::size_t, 3>, 9> kSizes{{{2, 3, 1},
                                                                       {2, 2, 1},
                                                                       {2, 2, 2},
                                                                       {3, 2, 1},
                                                                       {2, 1, 2},
                                                                       {3, 1, 2},
                                                                       {2, 1, 3},
                                                                       {1, 3, 1},
                                                                       {2, 3, 1}}};
    const auto [ranks, stages_per_rank, microbatches] = kSizes[random() % kSizes.size()];
    const bool folded = stages_per_rank == 2 && random() % 2 == 0;
    spec = {folded ? "zbv_greedy" : "zb_greedy", ranks, microbatches, stages_per_rank, {}, {}};
    layers = branching_layers(random, spec.stages() + random() % 3);
    DeviceKind kind;
    kind.stage_overhead = Nanoseconds{static_cast<std::int64_t>(random() % 3)};
    cluster =
        uniform_cluster(ranks, kind, {1e15}, Nanoseconds{static_cast<std::int64_t>(random() % 4)});
    placement = placement_for(spec);
  }
  Problem problem() const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = {spec}};
    for (std::size_t r = 0; r < spec.ranks; ++r) {
      p.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
      p.memory_limit.emplace_back(std::int64_t{1} << 40);
    }
    return p;
  }
  StageCosts costs(const Partition& cuts) const {
    return stage_costs(layers, cuts, placement, cluster);
  }
  /// Neighbours on different ranks send values and get gradients back.
  bool linked(const StageCosts& costs) const {
    for (std::size_t s = 1; s < spec.stages(); ++s) {
      const auto id = static_cast<std::int64_t>(s);
      const StagePair* const pair = find_pair(costs, StageId{id - 1}, StageId{id});
      if (placement.rank_of_stage[s - 1] != placement.rank_of_stage[s] &&
          (pair == nullptr || !pair->has_gradient))
        return false;
    }
    return true;
  }
  /// Every stage takes its least load, overheads left out.
  bool loaded(const Partition& cuts, const std::vector<std::int64_t>& least) const {
    for (std::size_t s = 0; s < least.size(); ++s) {
      std::int64_t load = 0;
      for (std::size_t l = s == 0 ? 0 : static_cast<std::size_t>(cuts.cuts[s - 1]) + 1;
           l < cuts.end(s, layers.size()); ++l) {
        const LayerTimes& t = layers.layers[l].times[0];
        load += (t.forward + t.backward_input + t.backward_weight).count();
      }
      if (load < least[s]) return false;
    }
    return true;
  }

  Layers layers;
  Cluster cluster;
  ScheduleSpec spec;
  Placement placement;
};

std::string refused(const Problem& problem, std::int64_t bound, CertifiedProof proof) {
  if (bound < 1) return "";
  return tool::certify(certificate_of(problem, bound, {std::move(proof)})).refusal;
}

// Two towers of two layers and a join, each layer a stage, alternately on two ranks, which take
// 111 ns: rank 0 B1, A1, C1 while rank 1 has A2 only when B2 is done.
TEST(Branching, TwoTowersTakeLessThanAChainWould) {
  Branching two{*std::make_unique<std::mt19937>(1)};
  two.spec = {"zb_greedy", 2, 1, 3, {}, {}};
  two.placement = placement_for(two.spec);
  two.cluster = uniform_cluster(2, DeviceKind{}, {1e15}, Nanoseconds{0});
  two.layers = {};
  for (const std::int64_t forward : {100, 1, 1, 100, 1, 1}) {
    Layer layer;
    layer.times = {{Nanoseconds{forward}, Nanoseconds{1}, Nanoseconds{1}, Nanoseconds{0}}};
    two.layers.layers.push_back(layer);
  }
  for (const auto& [from, to] : {std::pair{0, 1}, {2, 3}, {1, 4}, {3, 4}, {4, 5}})
    two.layers.values.push_back({"v", LayerId{from}, {LayerId{to}}, Bytes{8}, Bytes{8}, {}});
  const Problem problem = two.problem();
  const CutModel model(two.layers, two.cluster, MemoryRule::Lifetimes);
  const AnyOrder any(model, problem, two.spec);
  const Partition cuts{{0, 1, 2, 3, 4}};
  const StageCosts costs = two.costs(cuts);
  AllOrders orders(costs, two.placement, 1);
  EXPECT_EQ(orders.best_below(AllOrders::kNone), 111);
  EXPECT_EQ(evaluate(two.layers, two.cluster, orders.order(), two.placement, cuts).estimate,
            Nanoseconds{111});
  EXPECT_LE(any.bound(), 111);
  EXPECT_EQ(refused(problem, static_cast<std::int64_t>(any.bound_by_rows()), any.proof()), "");
  const Answer outcome = search(problem, {.iterations = 10});
  EXPECT_EQ(outcome.plans.at(0).estimate, Nanoseconds{111});
  EXPECT_EQ(outcome.bound->time, Nanoseconds{111});
}

TEST(Branching, BruteForceIsTheEstimate) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const Branching one(random);
    for_each_partition(one.layers, one.spec.stages(), [&](const Partition& cuts) {
      const StageCosts costs = one.costs(cuts);
      AllOrders orders(costs, one.placement, one.spec.microbatches);
      const std::int64_t best = orders.best_below(AllOrders::kNone);
      if (orders.unfinished()) return;
      EXPECT_EQ(
          evaluate(one.layers, one.cluster, orders.order(), one.placement, cuts).estimate.count(),
          best);
    });
  }
}

TEST(Branching, NoBoundOfAnyOrderIsAboveTheBestAndEveryProofIsAccepted) {
  const std::size_t all = instances(120);
  std::mt19937 random(7);
  std::size_t tight = 0, compared = 0, given_up = 0, unlinked = 0;
  for (std::size_t round = 0; round < all; ++round) {
    const Branching one(random);
    const Problem problem = one.problem();
    const CutModel model(one.layers, one.cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(one.spec.stages())) continue;
    std::vector<std::int64_t> least;
    for (std::size_t s = 0; s < one.spec.stages(); ++s)
      least.push_back(static_cast<std::int64_t>(random() % 20));
    const CutClass classes[] = {{}, {.linked = true}, {.least_load = least}};
    for (const CutClass& of : classes) {
      const AnyOrder any(model, problem, one.spec, of);
      ASSERT_LE(any.bound_by_rows(), any.bound()) << round;
      ASSERT_EQ(refused(problem, static_cast<std::int64_t>(any.bound_by_rows()), any.proof()), "")
          << round << " linked " << of.linked << " loads " << !of.least_load.empty();
      for_each_partition(one.layers, one.spec.stages(), [&](const Partition& cuts) {
        const StageCosts costs = one.costs(cuts);
        if ((of.linked && !one.linked(costs)) || !one.loaded(cuts, of.least_load)) return;
        const auto bound = static_cast<std::int64_t>(
            of.linked || !of.least_load.empty() ? any.bound()
                                                : std::max(any.bound(), work_bound(problem)));
        AllOrders orders(costs, one.placement, one.spec.microbatches);
        const std::int64_t best = orders.best_below(bound + 1);
        ++compared, given_up += orders.unfinished(), unlinked += !one.linked(costs);
        tight += best == bound;
        ASSERT_TRUE(best >= bound) << round << " takes " << best << ", not " << bound;
      });
      if (HasFatalFailure()) return;
    }
  }
  RecordProperty("compared", std::to_string(compared));
  std::printf(
      "%zu models, %zu cuts compared, %zu with unlinked stages, %zu reach the bound, %zu "
      "given up\n",
      all, compared, unlinked, tight, given_up);
  EXPECT_GT(tight * 20, compared);
  EXPECT_LT(given_up * 50, compared);
}

// The trees of listed schedules, of all cuts and of those that the proof restricts itself to.
TEST(Branching, NoBoundOfAListedScheduleIsAboveTheBestAndEveryProofIsAccepted) {
  const std::size_t all = instances(120);
  std::mt19937 random(11);
  std::size_t compared = 0, restricted = 0;
  for (std::size_t round = 0; round < all; ++round) {
    Branching one(random);
    one.spec = random_spec(random, one.spec.ranks, one.spec.microbatches, {1, 2, 3});
    one.placement = placement_for(one.spec);
    const Problem problem = one.problem();
    const CutModel model(one.layers, one.cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(one.spec.stages())) continue;
    for (const double few_cuts : {1e6, 0.0}) {
      Candidates candidates(model, problem, one.spec);
      BranchAndBound proof(candidates, {.record = true, .few_cuts = few_cuts});
      proof.bound_root(1e9);
      proof.run(40, 1e9);
      const auto bound = static_cast<std::int64_t>(std::min(proof.bound(), 1e9));
      const CertifiedProof written = proof.certificate(bound);
      ASSERT_EQ(refused(problem, bound, written), "") << round << " " << few_cuts;
      const Schedule schedule = generate(one.spec);
      for_each_partition(one.layers, one.spec.stages(), [&](const Partition& cuts) {
        if ((written.linked && !one.linked(one.costs(cuts))) ||
            !one.loaded(cuts, written.least_load))
          return void(++restricted);
        const auto estimate =
            evaluate(one.layers, one.cluster, schedule, one.placement, cuts).estimate;
        ASSERT_TRUE(estimate.count() >= bound) << round << " " << few_cuts;
        ++compared;
      });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%zu cuts compared, %zu outside of the class\n", compared, restricted);
  EXPECT_GT(compared, all);
}

// The whole search, cuts given or not, memory ample or not: its bound, of the schedules that it
// names, and its certificate.
TEST(Branching, NoBoundOfTheSearchIsAboveTheBestAndEveryCertificateIsAccepted) {
  const std::size_t all = instances(60);
  std::mt19937 random(13);
  std::size_t compared = 0, certified = 0, proven = 0, given_up = 0;
  for (std::size_t round = 0; round < all; ++round) {
    Branching one(random);
    const auto& [family, ranks, microbatches, stages_per_rank, batch, prefetch, slices, lengths,
                 rank_of_stage] = one.spec;
    Problem problem = one.problem();
    const std::size_t listed = random() % 3;
    if (listed > 0) problem.schedules.clear();
    for (std::size_t k = 0; k < listed; ++k)
      problem.schedules.push_back(random_spec(random, ranks, microbatches, {stages_per_rank}));
    if (listed == 1) problem.schedules.push_back(one.spec);
    std::ranges::sort(problem.schedules);
    problem.schedules.erase(std::ranges::unique(problem.schedules).begin(),
                            problem.schedules.end());
    for (Layer& layer : one.layers.layers)
      layer.saved = Bytes{static_cast<std::int64_t>(random() % 50)};
    if (random() % 2 == 0)
      for (Bytes& limit : problem.memory_limit)
        limit = Bytes{static_cast<std::int64_t>(60 + random() % 200)};
    if (random() % 3 == 0) {
      std::vector<Partition> cuts;
      for_each_partition(one.layers, one.spec.stages(),
                         [&](const Partition& some) { cuts.push_back(some); });
      if (!cuts.empty()) problem.cuts = cuts[random() % cuts.size()];
    }
    const Answer outcome = search(problem, {.iterations = 3, .certificate = true});
    if (outcome.certificate) {
      ++certified,
          proven += outcome.bound && outcome.bound->time.count() == outcome.certificate->bound;
      ASSERT_EQ(tool::certify(*outcome.certificate).refusal, "") << round;
    }
    if (!outcome.bound) continue;
    const std::int64_t bound = outcome.bound->time.count();
    for (const ScheduleSpec& spec : outcome.bound->schedules) {
      const Placement placement = placement_for(spec);
      for_each_partition(one.layers, spec.stages(), [&](const Partition& cuts) {
        if (problem.cuts && cuts != *problem.cuts) return;
        ++compared;
        const StageCosts costs = stage_costs(one.layers, cuts, placement, one.cluster);
        if (is_built(spec)) {
          OneByOne orders(costs, placement, microbatches, problem.memory_limit);
          const std::int64_t best = orders.best_below(bound);
          ASSERT_EQ(best, OneByOne::kNone) << round << ", not " << bound;
          given_up += orders.gave_up();
          return;
        }
        const Prices plan = evaluate(one.layers, one.cluster, generate(spec), placement, cuts);
        const bool fits =
            std::ranges::equal(plan.peak_memory, problem.memory_limit, std::less_equal{});
        ASSERT_TRUE(!fits || plan.estimate.count() >= bound) << round;
      });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%zu cuts compared, %zu not to the end, %zu certificates, %zu of all that is said\n",
              compared, given_up, certified, proven);
  EXPECT_GT(certified * 2, all);
  EXPECT_GT(compared, all);
}

}  // namespace
}  // namespace pfeife
