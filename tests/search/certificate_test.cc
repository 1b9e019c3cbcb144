// Certificates of random tiny problems: the judge accepts what the search proved, and nothing that
// brute force refutes.
#include <gtest/gtest.h>

#include <limits>

#include "planner/cost/stages/stage_bounds.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/ir/basics/error.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/bound/proof_record.h"
#include "tests/search/certified.h"
#include "tests/support/instances.h"

namespace pfeife {
namespace {

TEST(Certify, AcceptsTheProofsOfRandomProblemsAndNothingBetter) {
  std::mt19937 random(29);
  int bounds = 0, nothing_fits = 0;
  for (int round = 0; round < 300; ++round) {
    const Instance instance = random_instance(random, 3);
    const Answer outcome = certified_search(instance.problem());
    if (!outcome.certificate) continue;
    Certificate certificate = *outcome.certificate;
    const std::string refusal = tool::certify(certificate).refusal;
    ASSERT_EQ(refusal, "") << round << "\n" << certificate_text(certificate);
    ++(outcome.bound ? bounds : nothing_fits);
    if (!outcome.bound) continue;
    ASSERT_LE(outcome.bound->time, outcome.plans[0].estimate);
    // Else rows that may hang would fit in less.
    if (outcome.bound->time < outcome.plans[0].estimate) continue;
    ++certificate.bound;  // the plan itself is faster than that
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
  }
  EXPECT_GT(bounds, 150);
  EXPECT_GT(nothing_fits, 20);
}

/// 30 layers with skips on four ranks, two schedules, memory that binds: trees of hundreds of
/// nodes.
Instance instance_with_trees(std::mt19937& random) {
  Instance instance;
  RandomShape shape;
  shape.layers = 30, shape.skip_share = 0.2;
  instance.layers = random_layers(random, shape);
  instance.cluster = random_cluster(random, 4, true);
  instance.schedules = {random_spec(random, 4, 8, {1}), random_spec(random, 4, 8, {2})};
  const std::size_t limit = 12000 + random() % 20000;
  instance.memory_limit.assign(4, Bytes{static_cast<std::int64_t>(limit)});
  return instance;
}

TEST(Certify, TreesInPartsGiveTheSamePlanBoundAndCertificateForAnyNumberOfThreads) {
  std::mt19937 random(83);
  int certificates = 0;
  std::size_t largest = 0;
  for (int round = 0; round < 5; ++round) {
    const Instance instance = instance_with_trees(random);
    SearchOptions options{.iterations = 40, .certificate = true};
    const Answer one = search(instance.problem(), options);
    for (const std::size_t threads : {2, 3}) {
      options.threads = threads;
      const Answer many = search(instance.problem(), options);
      ASSERT_EQ(one.plans, many.plans) << round;
      ASSERT_EQ(one.bound, many.bound) << round;
      ASSERT_EQ(one.history, many.history) << round;
      ASSERT_EQ(one.certificate == nullptr, many.certificate == nullptr) << round;
      if (one.certificate) {
        ASSERT_TRUE(*one.certificate == *many.certificate) << round;
      }
    }
    if (!one.certificate) continue;
    ++certificates;
    EXPECT_EQ(tool::certify(*one.certificate).refusal, "") << round;
    for (const CertifiedProof& proof : one.certificate->proofs)
      largest = std::max(largest, proof.tree.size());
  }
  EXPECT_GT(certificates, 2);
  EXPECT_GT(largest, 100U);
}

TEST(Certify, AcceptsTheProofsOfRecomputedPlansAndNothingBetter) {
  std::mt19937 random(43);
  int recomputed = 0, nothing_fits = 0;
  for (int round = 0; round < 120; ++round) {
    Instance instance = random_instance(random, 2);
    instance.recompute = round % 3 == 0 ? Recompute::Full : Recompute::Choose;
    for (Layer& layer : instance.layers.layers) layer.saved.value *= 3;
    const Answer outcome = certified_search(instance.problem());
    if (!outcome.certificate) continue;
    Certificate certificate = *outcome.certificate;
    ASSERT_EQ(tool::certify(certificate).refusal, "") << round;
    const std::string text = certificate_text(certificate);
    ASSERT_EQ(certificate_text(read_certificate_text(text, "c")), text);
    if (!outcome.bound) {
      ++nothing_fits;
      continue;
    }
    ASSERT_EQ(certificate.bound, outcome.bound->time.count());
    const Priced& plan = outcome.plans[0];
    certificate.bound = plan.estimate.count() + 1;  // the plan itself is faster than that
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
    recomputed += !plan.activations.stages.empty();
  }
  EXPECT_GT(recomputed, 30);
  EXPECT_GT(nothing_fits, 5);
}

// The bound of given cuts is of them alone: it is the best time of the listed schedules unless the
// plan's order was built for its costs.
TEST(Certify, AcceptsTheProofsOfGivenCutsAndNothingBetter) {
  std::mt19937 random(47);
  int listed = 0, exact = 0, built = 0, nothing_fits = 0, slower_than_other_cuts = 0;
  const std::size_t rounds = instances(80);
  for (std::size_t round = 0; round < rounds; ++round) {
    Instance instance = random_instance(random, 3);
    const ScheduleSpec spec = instance.schedules[0];
    if (round % 2 == 0)
      instance.schedules.push_back(
          {spec.stages_per_rank == 2 && round % 4 == 0 ? "zbv_greedy" : "zb_greedy",
           spec.ranks,
           spec.microbatches,
           spec.stages_per_rank,
           {},
           {}});
    instance.recompute = static_cast<Recompute>(random() % 3);
    std::vector<Partition> all;
    for_each_partition(instance.layers, spec.stages(),
                       [&](const Partition& cuts) { all.push_back(cuts); });
    if (all.empty()) continue;
    Problem problem = instance.problem();
    problem.cuts = all[random() % all.size()];
    const Answer outcome = certified_search(problem);
    const double best = best_at_given_cuts(problem);
    if (outcome.plans.empty()) {
      EXPECT_TRUE(!outcome.infeasible->proven || best == std::numeric_limits<double>::infinity());
      if (!outcome.certificate) continue;
      ++nothing_fits;
      ASSERT_EQ(tool::certify(*outcome.certificate).refusal, "") << round;
      continue;
    }
    ASSERT_TRUE(outcome.bound);
    const Priced& plan = outcome.plans[0];
    const auto bound = static_cast<double>(outcome.bound->time.count());
    if (plan.order) {
      ASSERT_LE(bound, std::min(best, static_cast<double>(plan.estimate.count())));
    } else {
      ASSERT_LE(bound, best);
      exact += bound == best;
    }
    ASSERT_TRUE(outcome.certificate) << round;
    ++(plan.order ? built : listed);
    Certificate certificate = *outcome.certificate;
    const std::string text = certificate_text(certificate);
    ASSERT_EQ(certificate_text(read_certificate_text(text, "c")), text);
    if (plan.order) {
      ASSERT_LE(certificate.bound, outcome.bound->time.count());
    } else {
      ASSERT_EQ(certificate.bound, outcome.bound->time.count());
    }
    ASSERT_EQ(tool::certify(certificate).refusal, "") << round << "\n" << text;
    certificate.bound = plan.estimate.count() + 1;
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
    // It says nothing of other cuts.
    problem.cuts.reset();
    const Answer searched = certified_search(problem);
    slower_than_other_cuts += searched.plans[0].estimate < outcome.bound->time;
  }
  EXPECT_GT(listed, 12);
  EXPECT_GT(exact * 10, listed * 8) << "rows that may hang seldom fit where no others do";
  EXPECT_GT(built, 4);
  EXPECT_GT(nothing_fits, 4);
  EXPECT_GT(slower_than_other_cuts, 4);
}

// One rank of one layer that saves 1000 and has two microbatches in flight under gpipe: keeping
// takes 2000, recomputing 1000. F 10, B 20: 60 if it keeps, 80 if it recomputes.
TEST(Certify, TellsTimesAndMemoryOfRecomputationApart) {
  Layers layers;
  Layer layer;
  layer.times = {{Nanoseconds{10}, Nanoseconds{20}, Nanoseconds{0}, Nanoseconds{0}}};
  layer.saved = Bytes{1000};
  layers.layers.push_back(layer);
  CertifiedProof proof{{"gpipe", 1, 2, 1, {}, {}}, {0}, {}, {}, {CertifiedNode{}}};
  proof.tree[0].then = CertifiedNode::Then::Each;
  Certificate certificate{.layers = layers,
                          .cluster = uniform_cluster(1, DeviceKind{}, {1e9}, Nanoseconds{0}),
                          .device_of_rank = {DeviceId{0}},
                          .memory_limit = {Bytes{0}},
                          .proofs = {proof}};
  const auto most = [&](Recompute recompute, std::int64_t limit) {
    certificate.recompute = recompute, certificate.memory_limit = {Bytes{limit}};
    certificate.bound = 1;
    while (certificate.bound < 100 && tool::certify(certificate).refusal.empty())
      ++certificate.bound;
    return certificate.bound - 1;
  };
  EXPECT_EQ(most(Recompute::None, 2000), 60);
  EXPECT_EQ(most(Recompute::None, 1999), 99);  // nothing fits
  EXPECT_EQ(most(Recompute::Full, 2000), 80);
  EXPECT_EQ(most(Recompute::Full, 1000), 80);
  EXPECT_EQ(most(Recompute::Full, 999), 99);
  EXPECT_EQ(most(Recompute::Choose, 2000), 60);
  EXPECT_EQ(most(Recompute::Choose, 1999), 80);
  EXPECT_EQ(most(Recompute::Choose, 999), 99);
  // The same without a look at any cuts.
  certificate.proofs[0].tree[0].then = CertifiedNode::Then::Nothing;
  certificate.proofs[0].moments = {{0, 0}, {0, 1}, {0, 2}};
  certificate.bound = Certificate::kNothingFits;
  for (const Recompute recompute : {Recompute::Full, Recompute::Choose}) {
    certificate.recompute = recompute, certificate.memory_limit = {Bytes{1000}};
    EXPECT_NE(tool::certify(certificate).refusal, "");
    certificate.memory_limit = {Bytes{999}};
    EXPECT_EQ(tool::certify(certificate).refusal, "");
  }
}

// A plan of an order built for its costs: the certificate is of any order at all.
TEST(Certify, AcceptsTheProofsOfAnyOrderAndNothingBetterThanThePlan) {
  std::mt19937 random(37);
  int built = 0, whole = 0, split = 0, folded = 0;
  const std::size_t rounds = instances(48);
  for (std::size_t round = 0; round < rounds; ++round) {
    Instance instance = random_instance(random, 1);
    if (round % 2 == 0)  // one layer that decides
      for (LayerTimes& t : instance.layers.layers[random() % instance.layers.size()].times)
        t.forward *= 20, t.backward_input *= 20, t.backward_weight *= 20;
    const ScheduleSpec spec = instance.schedules[0];
    for (const std::size_t stages_per_rank : {1, 2})
      instance.schedules.push_back(
          {"zb_greedy", spec.ranks, spec.microbatches, stages_per_rank, {}, {}});
    instance.schedules.push_back({"zbv_greedy", spec.ranks, spec.microbatches, 2, {}, {}});
    const Answer outcome = certified_search(instance.problem());
    if (outcome.plans.empty() || !outcome.plans[0].order) continue;
    ++built, folded += outcome.plans[0].spec.family == "zbv_greedy";
    ASSERT_TRUE(outcome.certificate) << round;
    Certificate certificate = *outcome.certificate;
    split += std::ranges::any_of(certificate.proofs, [](const CertifiedProof& proof) {
      return proof.spec.family == "zb_greedy" && proof.tree.size() > 1;
    });
    const std::string text = certificate_text(certificate);
    ASSERT_EQ(certificate_text(read_certificate_text(text, "c")), text);
    ASSERT_EQ(tool::certify(certificate).refusal, "") << round << "\n" << text;
    // Where a stage may send nothing to the next, the rows may say less.
    ASSERT_LE(certificate.bound, outcome.bound->time.count());
    whole += certificate.bound == outcome.bound->time.count();
    certificate.bound = outcome.plans[0].estimate.count() + 1;
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
  }
  EXPECT_GT(built, 8);
  EXPECT_GT(whole, 4);
  EXPECT_GT(folded, 2);
  EXPECT_GT(split, 0) << "bounds by which stage has one layer";
}

// Two equal ranks, a chain of equal layers, no time to send: half of the layers each, 200 until a
// microbatch is at the second rank, then 4 times 600.
TEST(Certify, RefusesABoundOfAnyOrderOneNanosecondAboveWhatIsProvable) {
  Instance instance;
  for (std::int64_t l = 0; l < 4; ++l) {
    Layer layer;
    layer.times = {{Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{100}, Nanoseconds{0}}};
    instance.layers.layers.push_back(layer);
    if (l > 0)
      instance.layers.values.push_back(
          {"v", LayerId{l - 1}, {LayerId{l}}, Bytes{1}, Bytes{1}, Nanoseconds{0}});
  }
  instance.cluster = uniform_cluster(2, DeviceKind{}, {1e9}, Nanoseconds{0});
  instance.memory_limit = {Bytes{1 << 30}, Bytes{1 << 30}};
  instance.schedules = {{"zb_greedy", 2, 4, 1, {}, {}}};
  const Answer outcome = certified_search(instance.problem());
  ASSERT_TRUE(outcome.certificate);
  Certificate certificate = *outcome.certificate;
  EXPECT_EQ(certificate.bound, 2600);
  EXPECT_EQ(tool::certify(certificate).refusal, "");
  ++certificate.bound;
  EXPECT_NE(tool::certify(certificate).refusal, "");
}

/// What certificates call the load of a stage (ns).
std::int64_t load(const Instance& instance, const Priced& plan, std::size_t stage) {
  const Placement placement{placement_for(plan.spec).rank_of_stage,
                            instance.problem().device_of_rank};
  const StageBounds bounds =
      StageBounds(instance.layers, instance.cluster).for_placement(placement, Nanoseconds{0});
  std::vector<std::size_t> ends{0};  // positions
  for (std::size_t q = 1; q <= bounds.last(); ++q)
    if (q == bounds.last() ||
        std::ranges::count(plan.partition.cuts, static_cast<std::int32_t>(bounds.layer(q)) - 1))
      ends.push_back(q);
  return bounds.load(stage, ends[stage], ends[stage + 1]);
}

/// The node splits off what is above the threshold; two nodes that try each cut follow.
std::vector<CertifiedNode> split_once(CertifiedNode::Then split, std::uint32_t stage,
                                      std::int64_t threshold) {
  CertifiedNode root, each;
  root.then = split, root.stage = stage, root.threshold = threshold;
  each.then = CertifiedNode::Then::Each;
  return {root, each, each};
}

// Wherever a region is split, the best cuts are on one side of it: a bound above their time is
// refused, that time itself accepted. A side that is left out is not forgiven.
TEST(Certify, SplitsLoseNoCutsAndTreesMustCoverAll) {
  std::mt19937 random(41);
  int trees = 0;
  for (int round = 0; round < 15; ++round) {
    const Instance instance = random_instance(random, 2);
    const Answer outcome = certified_search(instance.problem());
    if (!outcome.certificate || !outcome.bound) continue;
    Certificate certificate = *outcome.certificate;
    std::erase_if(certificate.proofs,
                  [&](const CertifiedProof& proof) { return proof.spec != outcome.plans[0].spec; });
    ASSERT_EQ(certificate.proofs.size(), 1u);
    auto& tree = certificate.proofs[0].tree;
    const auto verdict_at = [&](std::int64_t bound) {
      certificate.bound = bound;
      return tool::certify(certificate).refusal;
    };
    const std::int64_t best = outcome.plans[0].estimate.count();
    const auto try_split = [&](CertifiedNode::Then split, std::uint32_t stage,
                               std::int64_t threshold) {
      tree = split_once(split, stage, threshold);
      ASSERT_EQ(verdict_at(best), "");
      ASSERT_NE(verdict_at(best + 1), "") << stage << " at " << threshold;
      tree.pop_back();
      ASSERT_NE(verdict_at(best), "") << "without its last node";
      tree = {tree.back(), tree.back()};
      ASSERT_NE(verdict_at(best), "") << "with a node too many";
      ++trees;
    };
    const auto stages = static_cast<std::uint32_t>(outcome.plans[0].spec.stages());
    for (std::uint32_t s = 0; s < stages; ++s) {
      for (std::int64_t end = 0; end <= static_cast<std::int64_t>(instance.layers.size()); ++end)
        try_split(CertifiedNode::Then::SplitEnd, s, end);
      for (const std::int64_t off : {-1, 0, 1})  // the best plan's own load, and beside it
        try_split(CertifiedNode::Then::SplitLoad, s, load(instance, outcome.plans[0], s) + off);
    }
  }
  EXPECT_GT(trees, 100);
}

// A stage of these models may send nothing to the next: the rows leave out the way before it.
TEST(Certify, AcceptsWhatNoOrderGoesBelowInModelsWithBranchesAndNothingBetterThanASchedule) {
  std::mt19937 random(101);
  int broken = 0, whole = 0, needed = 0, proven = 0;
  for (int round = 0; round < 1000; ++round) {
    OfAnyOrder of(random);
    if (!of.certificate || of.certificate->bound == 0) continue;
    Certificate& certificate = *of.certificate;
    const double best = brute_force(of.instance.problem(), of.spec).time;
    ASSERT_LE(of.bound, best) << round;
    ASSERT_EQ(tool::certify(certificate).refusal, "") << round << certificate_text(certificate);
    ++proven, whole += static_cast<double>(certificate.bound) == of.bound;
    for (CertifiedPath& row : certificate.proofs[0].paths) {
      const auto skipped = static_cast<std::size_t>(std::ranges::count(row.turns, 's'));
      if (skipped == 0) continue;
      row.turns.replace(0, skipped, std::string(skipped, 'f'));
      ++broken, needed += !tool::certify(certificate).refusal.empty();
      row.turns.replace(0, skipped, std::string(skipped, 's'));
    }
    certificate.bound = static_cast<std::int64_t>(best) + 1;
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
  }
  EXPECT_GT(proven, 500);
  EXPECT_GT(whole, 400);
  EXPECT_GT(broken, 100);
  EXPECT_GT(needed, 5) << "proofs refused if all of a way counts, although it may not exist";
}

}  // namespace
}  // namespace pfeife
