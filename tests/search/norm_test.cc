// REDUCE_NORM, a number of all gradients that all optimizer steps wait for: the search's price
// against the full estimate, plan and bound against brute force, and the judge on both.
#include <gtest/gtest.h>

#include "planner/cost/stages/stage_costs.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/price/candidate.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Nanoseconds nanoseconds(std::int64_t count) { return Nanoseconds{count}; }

/// Devices on which clipping takes about as long as a layer.
void make_clipping_slow(Cluster& cluster, std::mt19937& random) {
  for (DeviceKind& kind : cluster.kinds) {
    kind.type = random() % 2 == 0 ? DeviceType::Cpu : DeviceType::Gpu;
    kind.kernel_overhead = nanoseconds(static_cast<std::int64_t>(random() % 40));
    kind.memory_bandwidth = {static_cast<double>(random() % 4) * 1e9};
    kind.memory_efficiency = 0.5 + 0.1 * static_cast<double>(random() % 5);
  }
}

/// Optimizer steps that differ from stage to stage, so that it matters who is the slowest.
Instance instance_with_norm(std::mt19937& random, std::size_t schedules) {
  Instance instance = random_instance(random, schedules, random() % 2 == 0 ? 0.3 : 0);
  make_clipping_slow(instance.cluster, random);
  for (LayerParameter& parameter : instance.layers.parameters)
    for (Nanoseconds& time : parameter.optimizer)
      time = nanoseconds(static_cast<std::int64_t>(random() % 600));
  instance.norm = random() % 3 == 0 ? StepNorm::Finite : StepNorm::Clipped;
  return instance;
}

// Two layers on two ranks, one microbatch. Forward 4 and 5, backward 6 and 9, a message 2 each way:
// F0 ends at 4, F1 at 6 + 5, B1 at 20, B0 at 22 + 6 = 28. The norm follows: two messages of 4 bytes
// at 1 ns and 4 GB/s, 4 in all; rank 0 clips 30 bytes, which move three times at 1 GB/s, by one
// operator of 5: 95. Both optimizer steps, of 1 and 7, begin at 127 and the later ends at 134.
// Without the norm rank 1 would be done at 27 and rank 0 at 29.
struct TwoRanks {
  TwoRanks() {
    DeviceKind kind;
    kind.type = DeviceType::Gpu;
    kind.kernel_overhead = nanoseconds(5);
    kind.memory_bandwidth = {1e9}, kind.memory_efficiency = 1;
    cluster = uniform_cluster(2, kind, {4e9}, nanoseconds(1));
    const auto layer = [&](LayerTimes times, Bytes gradient, Nanoseconds optimizer) {
      const LayerId id{layers.layers.size()};
      layers.layers.emplace_back().times = {times};
      layers.parameters.push_back({"p", gradient, gradient, Bytes{0}, {id}, {optimizer}});
    };
    layer({nanoseconds(4), nanoseconds(4), nanoseconds(2), nanoseconds(0)}, Bytes{30},
          nanoseconds(1));
    layer({nanoseconds(5), nanoseconds(6), nanoseconds(3), nanoseconds(0)}, Bytes{12},
          nanoseconds(7));
    LayerValue value{"v", LayerId{0}, {LayerId{1}}, Bytes{4}, Bytes{4}, {}};
    value.has_gradient = true;
    layers.values.push_back(value);
  }
  Problem problem(StepNorm norm) const {
    Problem p{.layers = layers, .cluster = cluster, .schedules = {{"1f1b", 2, 1, 1, {}, {}}}};
    p.device_of_rank = {DeviceId{0}, DeviceId{1}};
    p.memory_limit.assign(2, Bytes{1 << 30});
    p.norm = norm;
    return p;
  }
  Layers layers;
  Cluster cluster;
};

TEST(Norm, OfTwoRanksByHand) {
  const TwoRanks two;
  for (const auto& [norm, step] :
       {std::pair{StepNorm::None, 29}, {StepNorm::Finite, 28 + 4 + 7}, {StepNorm::Clipped, 134}}) {
    const Answer outcome = search(two.problem(norm), {.certificate = true});
    ASSERT_EQ(outcome.plans.size(), 1u);
    EXPECT_EQ(outcome.plans[0].estimate, nanoseconds(step));
    EXPECT_EQ(outcome.bound->time, nanoseconds(step));
    EXPECT_EQ(outcome.plans[0].rows->costs.norm.has_value(), norm != StepNorm::None);
    ASSERT_TRUE(outcome.certificate);
    EXPECT_EQ(outcome.certificate->norm, norm);
    EXPECT_EQ(outcome.certificate->bound, step);
    EXPECT_EQ(tool::certify(*outcome.certificate).refusal, "");
  }
}

// At least: 21 of the 42 bytes are on one of the ranks.
TEST(Norm, TakesNoLessThanTheShareOfOneRank) {
  const TwoRanks two;
  const Problem problem = two.problem(StepNorm::Clipped);
  EXPECT_EQ(least_norm_time(two.layers, problem.norm, problem.device_of_rank, two.cluster),
            nanoseconds(4 + 5 + 3 * 21));
  EXPECT_EQ(least_norm_time(two.layers, StepNorm::Finite, problem.device_of_rank, two.cluster),
            nanoseconds(4));
  EXPECT_EQ(least_norm_time(two.layers, StepNorm::None, problem.device_of_rank, two.cluster),
            nanoseconds(0));
}

TEST(Norm, IsPricedInTheSearchAsInTheFullEstimate) {
  std::mt19937 random(3);
  std::size_t narrow = 0, tails = 0, least = 0;
  for (int round = 0; round < 120; ++round) {
    Instance instance = instance_with_norm(random, 1);
    const ScheduleSpec& spec = instance.schedules[0];
    Layers& layers = instance.layers;
    if (round % 3 == 0)
      for (std::size_t l = 0; l < layers.size(); ++l)
        layers.reductions.push_back(
            {nanoseconds(static_cast<std::int64_t>(random() % 500)), nanoseconds(200)});
    const Problem problem = instance.problem();
    const CutModel model(layers, instance.cluster, MemoryRule::Lifetimes, false, problem.norm);
    if (model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    Candidates candidates(model, problem, spec);
    narrow += candidates.costs().is_narrow();
    std::vector<Cuts> all;
    std::vector<double> exact, found;
    const Nanoseconds always =
        least_norm_time(layers, problem.norm, problem.device_of_rank, instance.cluster);
    for_each_partition(layers, spec.stages(), [&](const Partition& partition) {
      all.push_back(*model.cuts(partition));
      const Prices full =
          evaluate(layers, instance.cluster, candidates.schedule(), candidates.placement(),
                   partition, MemoryRule::Lifetimes, {}, problem.norm);
      exact.push_back(static_cast<double>(full.estimate.count()));
      ASSERT_EQ(candidates.time(all.back()), exact.back()) << round;
      ASSERT_LE(always, *full.costs.norm) << round;
      least += always == *full.costs.norm;
      tails += !full.costs.reductions.empty();
    });
    candidates.times(all, found, kInfinite);
    ASSERT_EQ(found, exact) << round;
    std::vector<char> sure;
    candidates.search_times(all, found, sure);
    for (std::size_t k = 0; k < all.size(); ++k)
      ASSERT_TRUE(sure[k] ? found[k] == exact[k] : found[k] <= exact[k]) << round;
  }
  EXPECT_GT(narrow, 100u);
  EXPECT_GT(tails, 150u);
  EXPECT_GT(least, 100u);
}

TEST(Norm, IsInPlansBoundsAndCertificatesAsBruteForceHasThem) {
  std::mt19937 random(19);
  int bounds = 0, certificates = 0, proven = 0, other_without = 0;
  for (int round = 0; round < 250; ++round) {
    Instance instance = instance_with_norm(random, 2);
    if (round % 4 == 0) instance.cluster.kinds[0].kernel_overhead = nanoseconds(5000);
    const Problem problem = instance.problem();
    double least = kInfinite, floor = kInfinite;
    std::vector<Partition> at;
    for (const ScheduleSpec& spec : instance.schedules) {
      const Best best = brute_force(problem, spec);
      if (best.time < least) least = best.time, at = best.at;
      floor = std::min(floor, best.floor);
    }
    const Answer outcome = certified_search(problem);
    ASSERT_EQ(outcome.plans.empty(), least == kInfinite) << round;
    if (outcome.certificate) {
      ++certificates;
      ASSERT_EQ(outcome.certificate->norm, instance.norm);
      ASSERT_EQ(tool::certify(*outcome.certificate).refusal, "") << round;
      const std::string text = certificate_text(*outcome.certificate);
      ASSERT_EQ(certificate_text(read_certificate_text(text, "c")), text);
    }
    if (outcome.plans.empty()) continue;
    ++bounds;
    const Priced& plan = outcome.plans[0];
    ASSERT_EQ(static_cast<double>(plan.estimate.count()), least) << round;
    ASSERT_LE(static_cast<double>(outcome.bound->time.count()), least) << round;
    proven += outcome.bound->time == plan.estimate;
    if (outcome.certificate && floor == least) {
      Certificate higher = *outcome.certificate;
      higher.bound = plan.estimate.count() + 1;
      ASSERT_NE(tool::certify(higher).refusal, "") << round;
    }
    Problem without = problem;
    without.norm = StepNorm::None;
    const Answer blind = search(without, {.iterations = 30});
    other_without += std::ranges::find(at, blind.plans.at(0).partition) == at.end();
  }
  EXPECT_GT(bounds, 150);
  EXPECT_GT(certificates, 150);
  EXPECT_GT(proven, 140);
  EXPECT_GT(other_without, 5) << "a search without the norm would find the same plans";
}

// An order that is built for its costs knows the norm, too: what it is judged by is what it takes.
TEST(Norm, IsInOrdersThatAreBuiltForTheCosts) {
  std::mt19937 random(7);
  int built = 0, proven = 0;
  for (int round = 0; round < 12; ++round) {
    Instance instance = instance_with_norm(random, 1);
    instance.norm = StepNorm::Clipped;
    const ScheduleSpec listed = instance.schedules[0];
    instance.schedules = {{"zb_greedy", listed.ranks, listed.microbatches, 1, {}, {}}};
    for (Bytes& limit : instance.memory_limit) limit = Bytes{1 << 30};
    const Problem problem = instance.problem();
    const Answer outcome = search(problem, {.iterations = 10});
    if (outcome.plans.empty()) continue;
    ++built;
    const Priced& plan = outcome.plans[0];
    EXPECT_EQ(evaluate(problem.layers, problem.cluster, *plan.order, plan.placement, plan.partition,
                       MemoryRule::Lifetimes, plan.activations, problem.norm)
                  .estimate,
              plan.estimate);
    ASSERT_TRUE(outcome.bound);
    EXPECT_LE(outcome.bound->time, plan.estimate) << round;
    proven += outcome.bound->time == plan.estimate;
  }
  EXPECT_GT(built, 6);
  EXPECT_GT(proven, 1);
}

}  // namespace
}  // namespace pfeife
