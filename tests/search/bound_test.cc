// Proof is proof: bounds and proven optima against brute force over all cuts.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "planner/schedule_tool/certify.h"
#include "planner/search/bound/stage_bound.h"
#include "planner/search/bound/stage_paths.h"
#include "planner/search/cuts/start_cuts.h"
#include "planner/search/proof/branch_and_bound.h"
#include "tests/search/random_instance.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Proves the instance's only schedule step by step, in up to `parts` parts; true if a bound was
/// ever above the optimum. Counts the steps with several parts.
bool bound_is_wrong(const Instance& instance, const BranchAndBound::Settings& settings,
                    std::size_t parts = 1, int* split = nullptr) {
  const Problem problem = instance.problem();
  const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
  const ScheduleSpec& spec = instance.schedules[0];
  if (model.last() < static_cast<std::int32_t>(spec.stages())) return false;
  const Best best = brute_force(problem, spec);
  Candidates candidates(model, problem, spec);
  BranchAndBound proof(candidates, settings);
  proof.bound_root(kInfinite);
  for (int step = 0; step < 20000 && !proof.closed(); ++step) {
    if (proof.bound() > best.time) return true;
    const std::vector<BranchAndBound*> dealt = proof.deal(parts);
    for (BranchAndBound* part : dealt) part->run(1, kInfinite);
    proof.join();
    if (dealt.size() > 1 && split != nullptr) ++*split;
  }
  return !proof.closed() || proof.bound() > best.time || candidates.best_time() != best.time;
}

TEST(BranchAndBound, NeverBoundsAboveTheBruteForceOptimumAndProvesIt) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round)
    ASSERT_FALSE(bound_is_wrong(random_instance(random, 1, round % 2 ? 0.5 : 0),
                                {.enumerate = round % 4 < 2 ? 1U : 512U}))
        << round;
}

TEST(BranchAndBound, InPartsNeverBoundsAboveTheBruteForceOptimumAndProvesIt) {
  std::mt19937 random(71);
  int split = 0;
  for (int round = 0; round < 450; ++round)
    ASSERT_FALSE(bound_is_wrong(random_instance(random, 1, round % 2 ? 0.5 : 0), {.enumerate = 1},
                                3, &split))
        << round;
  EXPECT_GT(split, 100);
}

TEST(BranchAndBound, WeightsOfAMixtureOfCutsRaiseTheRootNeverAboveTheOptimum) {
  std::mt19937 random(41);
  int raised = 0;
  for (int round = 0; round < 400; ++round) {
    const Instance instance = random_instance(random, 1, round % 2 ? 0.5 : 0);
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const ScheduleSpec& spec = instance.schedules[0];
    if (model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    const Best best = brute_force(problem, spec);
    if (best.time == kInfinite) continue;
    Candidates candidates(model, problem, spec);
    BranchAndBound proof(candidates);
    proof.bound_root(best.time + 1);
    const double before = proof.bound();
    proof.strengthen_root(best.time + 1);
    ASSERT_GE(proof.bound(), before) << round;
    ASSERT_LE(proof.bound(), best.time) << round;
    raised += proof.bound() > before;
  }
  EXPECT_GT(raised, 15);
}

/// Whether every stage takes `share` of the mean load, and each sends values to the next one on
/// another rank and gets gradients back if `linked`.
bool in_class(const Cuts& cuts, const Candidates& candidates, double share, bool linked) {
  CutCosts costs(candidates.model(), candidates.placement());
  const Program& program = candidates.program();
  std::vector<double> durations(program.durations());
  costs.price(cuts, program, durations.data(), 1);
  for (std::size_t s = 0; s < candidates.stages(); ++s) {
    const auto& load = candidates.model().load(costs.kind(s));
    const double mine =
        load[static_cast<std::size_t>(cuts[s + 1])] - load[static_cast<std::size_t>(cuts[s])];
    if (mine < share * load.back() / static_cast<double>(candidates.stages())) return false;
    if (linked && s > 0 &&
        (durations[program.forward_latency(s)] == Program::kNever ||
         durations[program.backward_latency(s)] == Program::kNever))
      return false;
  }
  return true;
}

/// Whether a proof of linked cuts is refused if it claims all of them.
bool refused_of_all_cuts(Certificate certificate, std::int64_t bound) {
  const bool linked = certificate.proofs[0].linked;
  certificate.bound = bound, certificate.proofs[0].linked = false;
  return linked && !tool::certify(certificate).refusal.empty();
}

TEST(BranchAndBound, OfARestrictedClassIsNotAboveItsBruteForceOptimum) {
  std::mt19937 random(23);
  int linked = 0, smaller = 0, proven = 0, needed = 0;
  for (int round = 0; round < 2000; ++round) {
    const Instance instance = random_instance(random, 1, 0.5);
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const ScheduleSpec& spec = instance.schedules[0];
    if (model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    Candidates candidates(model, problem, spec);
    BranchAndBound proof(candidates, {.enumerate = 1, .record = true, .few_cuts = 0});
    proof.bound_root(kInfinite);
    double best = kInfinite, all = kInfinite;
    for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
      const Cuts cuts = *model.cuts(partition);
      const Prices plan = evaluate(problem.layers, problem.cluster, candidates.schedule(),
                                   placement_for(spec), partition);
      for (std::size_t r = 0; r < plan.peak_memory.size(); ++r)
        if (plan.peak_memory[r] > problem.memory_limit[r]) return;
      const auto time = static_cast<double>(plan.estimate.count());
      all = std::min(all, time);
      if (in_class(cuts, candidates, proof.least_share(), proof.linked_only()))
        best = std::min(best, time);
    });
    for (int step = 0; step < 20000 && !proof.closed(); ++step) {
      ASSERT_LE(proof.bound(), best) << round;
      proof.run(1, kInfinite);
    }
    ASSERT_TRUE(proof.closed());
    EXPECT_LE(proof.bound(), best) << round;
    // The judge knows the class, and nothing better of it than its best cuts.
    const double least = std::min(proof.bound(), candidates.unsure());
    const bool nothing_fits = least == kInfinite;
    const auto bound = nothing_fits ? Certificate::kNothingFits : static_cast<std::int64_t>(least);
    Certificate certificate = certificate_of(problem, bound, {proof.certificate(bound)});
    EXPECT_EQ(certificate.proofs[0].linked, proof.linked_only());
    ASSERT_EQ(tool::certify(certificate).refusal, "") << round;
    proven += proof.linked_only() && !nothing_fits;
    if (best == kInfinite) continue;
    certificate.bound = static_cast<std::int64_t>(best) + 1;
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
    needed += refused_of_all_cuts(certificate, bound);
    EXPECT_LE(candidates.best_time(), best) << round;
    linked += proof.linked_only(), smaller += best > all;
  }
  EXPECT_GT(linked, 20);
  EXPECT_GT(proven, 200);
  EXPECT_GT(needed, 20) << "proofs that do not hold of all cuts";
  EXPECT_GT(smaller, 10) << "classes without the best cuts";
}

// A chain of 40 layers but for one beside it: a stage of that one alone sends nothing to its
// neighbour. Nobody looks at the twelve million cuts into eight stages one by one; of two stages
// all are covered.
TEST(BranchAndBound, CoversAllCutsUnlessTheyAreManyAndSomeNeighboursAreNotLinked) {
  const Cluster cluster = uniform_cluster(8, DeviceKind{}, {1e9}, Nanoseconds{1});
  Layers layers;
  for (std::int64_t l = 0; l < 40; ++l) {
    layers.layers.emplace_back().times = {
        {Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{0}}};
    std::vector<LayerId> readers{LayerId{l == 19 ? 21 : l == 20 ? 30 : l + 1}};
    if (l == 10) readers.emplace_back(20);
    if (l < 39) layers.values.push_back({"", LayerId{l}, readers, Bytes{8}, Bytes{8}, {}});
  }
  const CutModel model(layers, cluster, MemoryRule::Lifetimes);
  ASSERT_FALSE(model.all_linked());
  for (const std::size_t ranks : {2, 8}) {
    Problem problem{.layers = layers, .cluster = cluster};
    for (std::size_t r = 0; r < ranks; ++r)
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.assign(ranks, Bytes{1 << 30});
    const auto root = [&](const BranchAndBound::Settings& settings) {
      Candidates candidates(model, problem, {"1f1b", ranks, 8, 1, {}, {}});
      BranchAndBound proof(candidates, settings);
      proof.bound_root(kInfinite);
      return std::pair{proof.bound(), proof.linked_only() || proof.least_share() > 0};
    };
    const auto [bound, restricted] = root({});
    EXPECT_EQ(restricted, ranks == 8);
    if (restricted) {
      EXPECT_GT(bound, 1.2 * root({.few_cuts = 1e300}).first);
    }
  }
}

// Limits of just what a plan takes do not exclude it, neither from the search nor from its proof.
TEST(BranchAndBound, KeepsPlansThatJustFit) {
  std::mt19937 random(67);
  for (int round = 0; round < 300; ++round) {
    Instance instance = random_instance(random, 1, 0.5);
    const ScheduleSpec spec = instance.schedules[0];
    for (Bytes& limit : instance.memory_limit) limit = Bytes{1 << 30};
    std::vector<Partition> all;
    for_each_partition(instance.layers, spec.stages(),
                       [&](const Partition& cuts) { all.push_back(cuts); });
    if (all.empty()) continue;
    const Prices plan = evaluate(instance.layers, instance.cluster, generate(spec),
                                 placement_for(spec), all[random() % all.size()]);
    instance.memory_limit = plan.peak_memory;
    const Best best = brute_force(instance.problem(), spec);
    const Answer outcome = search(instance.problem(), {.iterations = 30});
    ASSERT_FALSE(outcome.plans.empty()) << round;
    ASSERT_EQ(static_cast<double>(outcome.plans[0].estimate.count()), best.time) << round;
    ASSERT_EQ(static_cast<double>(outcome.bound->time.count()), best.floor) << round;
  }
}

TEST(StageBound, IsNotAboveTheBruteForceOptimumOfLinkedStagesAndOftenNearIt) {
  std::mt19937 random(37);
  int near = 0, split = 0, tried = 0, proven = 0;
  for (int round = 0; round < 600; ++round) {
    Instance instance = random_instance(random, 1, round % 2 ? 0.5 : 0);
    for (LayerTimes& t : instance.layers.layers[random() % instance.layers.size()].times)
      t.forward *= 5, t.backward_input *= 5, t.backward_weight *= 5;
    const ScheduleSpec& spec = instance.schedules[0];
    const Problem problem = instance.problem();
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    Candidates candidates(model, problem, spec);
    double best = kInfinite;
    for_each_partition(problem.layers, spec.stages(), [&](const Partition& partition) {
      if (in_class(*model.cuts(partition), candidates, 0, true))
        best = std::min(best, static_cast<double>(evaluate(problem.layers, problem.cluster,
                                                           candidates.schedule(),
                                                           placement_for(spec), partition)
                                                      .estimate.count()));
    });
    if (best == kInfinite) continue;
    const std::vector<CutCosts::Latency> none(spec.stages(), {0, 0});
    const double bound =
        stage_bound(model, candidates.costs(), candidates.schedule(), none, best + 1);
    ASSERT_LE(bound, best) << round;
    Certificate certificate = certificate_of(problem, static_cast<std::int64_t>(bound), {});
    const auto prove = [&](double above) {
      certificate.proofs = {stage_proof(candidates, static_cast<std::int64_t>(bound))};
      certificate.bound = static_cast<std::int64_t>(above);
      return tool::certify(certificate).refusal;
    };
    ASSERT_EQ(prove(bound), "") << round;
    ASSERT_NE(prove(best + 1), "") << round;
    proven += certificate.proofs[0].paths.size() > 1;
    ++tried, near += bound > 0.98 * best, split += spec.family.starts_with("zb");
  }
  EXPECT_GT(tried, 300);
  EXPECT_GT(near, 50) << "of " << tried;
  EXPECT_GT(proven, 100) << "by paths of several stages";
  EXPECT_GT(split, 30);
}

TEST(StageCuts, AreLegalAndLetNoStageEndAfterTheStageBound) {
  std::mt19937 random(43);
  for (int round = 0; round < 40; ++round) {
    const RandomShape shape{.layers = 100, .skip_share = 0, .two_kinds = false};
    const Layers layers = random_layers(random, shape);
    const std::size_t ranks = 4 + random() % 13;
    const Cluster cluster = random_cluster(random, ranks, false);
    const ScheduleSpec spec{
        .family = round % 2 ? "zb_h1" : "1f1b", .ranks = ranks, .microbatches = ranks + 3};
    Problem problem{.layers = layers, .cluster = cluster, .schedules = {spec}};
    for (std::size_t r = 0; r < ranks; ++r)
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
    problem.memory_limit.assign(ranks, Bytes{1 << 30});
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    const Candidates candidates(model, problem, spec);
    const Cuts cuts = stage_cuts(model, candidates.costs(), candidates.schedule());
    ASSERT_EQ(cuts.size(), ranks + 1);
    ASSERT_EQ(std::ranges::adjacent_find(cuts, std::ranges::greater_equal{}), cuts.end()) << round;
    ASSERT_TRUE(cuts.front() == 0 && cuts.back() == model.last());
    const std::vector<CutCosts::Latency> none(ranks, {0, 0});
    const double bound = stage_bound(model, candidates.costs(), candidates.schedule(), none, 1e15);
    // A stage begins when the forwards of one microbatch have come to it.
    for (std::size_t s = 0; s < ranks; ++s) {
      const auto begin = static_cast<std::size_t>(cuts[s]),
                 end = static_cast<std::size_t>(cuts[s + 1]);
      const double busy =
          static_cast<double>(spec.microbatches) * (model.load(0)[end] - model.load(0)[begin]);
      EXPECT_LE(model.time(0, Work::Forward)[begin] + busy, bound) << round << ' ' << s;
    }
  }
}

/// Times never rise with the work done, no bound is above the optimum, and both end at the plan.
void expect_history(const Answer& outcome) {
  ASSERT_FALSE(outcome.history.empty());
  SearchStep before;
  for (const SearchStep& step : outcome.history) {
    EXPECT_GE(step.candidates, before.candidates);
    if (before.best) {
      EXPECT_LE(*step.best, *before.best);
    }
    if (step.bound) {
      EXPECT_LE(*step.bound, outcome.plans[0].estimate);
    }
    before = step;
  }
  EXPECT_EQ(before,
            (SearchStep{outcome.candidates, outcome.plans[0].estimate, outcome.bound->time}));
}

TEST(Search, EqualsBruteForceOverCutsAndSchedulesOnAThousandRandomProblems) {
  std::mt19937 random(17);
  int infeasible = 0, feasible = 0, split_backward = 0, three_stages_a_rank = 0;
  for (int round = 0; round < 1000; ++round) {
    const Instance instance = random_instance(random, 3);
    const Problem problem = instance.problem();
    double best = kInfinite, floor = kInfinite;
    std::map<ScheduleSpec, double> best_of;
    for (const ScheduleSpec& spec : instance.schedules) {
      const Best found = brute_force(problem, spec);
      best = std::min(best, best_of[spec] = found.time), floor = std::min(floor, found.floor);
      split_backward += spec.family.starts_with("zb");
      three_stages_a_rank += spec.stages_per_rank == 3;
    }
    SearchOptions options;
    options.iterations = 30, options.keep = 1;  // the others are rejected with their bounds
    const Answer outcome = search(problem, options);
    if (best == kInfinite) {
      ++infeasible;
      ASSERT_TRUE(outcome.plans.empty()) << round;
      if (outcome.infeasible) {
        EXPECT_EQ(outcome.infeasible->proven, floor == kInfinite) << round;
      }
      continue;
    }
    ++feasible;
    ASSERT_FALSE(outcome.plans.empty()) << round;
    EXPECT_EQ(static_cast<double>(outcome.plans[0].estimate.count()), best) << round;
    ASSERT_TRUE(outcome.bound) << round;
    EXPECT_EQ(static_cast<double>(outcome.bound->time.count()), std::min(best, floor)) << round;
    if (floor >= best) expect_history(outcome);
    for (const Rejected& rejected : outcome.rejected)
      if (rejected.bound) {
        EXPECT_LE(static_cast<double>(rejected.bound->count()), best_of.at(rejected.spec)) << round;
      }
    for (std::size_t r = 0; r < problem.memory_limit.size(); ++r)
      EXPECT_LE(outcome.plans[0].peak_memory[r], problem.memory_limit[r]);
  }
  EXPECT_GT(infeasible, 100);
  EXPECT_GT(feasible, 500);
  EXPECT_GT(split_backward, 100);
  EXPECT_GT(three_stages_a_rank, 100);
}

}  // namespace
}  // namespace pfeife
