// Forward only: plans, bounds and certificates of random small problems against brute force over
// all cuts.
#include <gtest/gtest.h>

#include <limits>

#include "planner/cost/layers/forward_layers.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/schedule_tool/certify.h"
#include "planner/search/bound/stage_bound.h"
#include "planner/search/proof/branch_and_bound.h"
#include "tests/search/certified.h"

namespace pfeife {
namespace {

constexpr double kNoPlan = std::numeric_limits<double>::infinity();

Instance random_forward(std::mt19937& random, double skip_share) {
  Instance instance = random_instance(random, 0, skip_share);
  instance.layers = forward_layers(std::move(instance.layers));
  const std::vector<std::size_t> stages_per_rank{1, 2, 3};
  instance.schedules = search_set(instance.memory_limit.size(), 1 + random() % 5, stages_per_rank,
                                  std::vector<std::string>{"forward"});
  for (Bytes& limit : instance.memory_limit)
    if (limit < Bytes{1 << 30}) limit = Bytes{static_cast<std::int64_t>(700 + random() % 3000)};
  return instance;
}

TEST(ForwardSearch, FindsTheBestOfAllCutsAndProvesIt) {
  std::mt19937 random(17);
  int bounds = 0, nothing_fits = 0;
  for (int round = 0; round < 200; ++round) {
    const Instance instance = random_forward(random, round % 3 ? 0.5 : 0);
    double best = kNoPlan, floor = kNoPlan;
    for (const ScheduleSpec& spec : instance.schedules) {
      const Best found = brute_force(instance.problem(), spec);
      best = std::min(best, found.time), floor = std::min(floor, found.floor);
    }
    const Answer answer = certified_search(instance.problem());
    ASSERT_EQ(
        answer.plans.empty() ? kNoPlan : static_cast<double>(answer.plans[0].estimate.count()),
        best)
        << round;
    for (const Priced& plan : answer.plans) ASSERT_EQ(plan.spec.family, "forward");
    if (answer.bound) {
      ASSERT_LE(static_cast<double>(answer.bound->time.count()), floor) << round;
    }
    if (!answer.certificate) continue;
    Certificate certificate =
        read_certificate_text(certificate_text(*answer.certificate), "as written");
    ASSERT_EQ(tool::certify(certificate).refusal, "") << round;
    ++(answer.bound ? bounds : nothing_fits);
    if (!answer.bound) continue;
    ASSERT_LE(static_cast<double>(certificate.bound), floor) << round;
    if (static_cast<double>(certificate.bound) < floor) continue;
    ++certificate.bound;  // the best plan itself is faster than that
    ASSERT_NE(tool::certify(certificate).refusal, "") << round;
  }
  EXPECT_GT(bounds, 90);
  EXPECT_GT(nothing_fits, 5);
}

TEST(ForwardSearch, NoBoundIsAboveTheBestOfAllCuts) {
  std::mt19937 random(23);
  int equal = 0, compared = 0;
  for (int round = 0; round < 200; ++round) {
    Instance instance = random_forward(random, round % 2 ? 0.5 : 0);
    for (Bytes& limit : instance.memory_limit) limit = Bytes{1 << 30};
    const CutModel model(instance.layers, instance.cluster, MemoryRule::Lifetimes);
    const Problem problem = instance.problem();
    for (const ScheduleSpec& spec : instance.schedules) {
      const double best = brute_force(problem, spec).time;
      if (best == kNoPlan) continue;
      ASSERT_LE(AnyOrder(model, problem, spec).bound(), best) << round;
      if (!model.all_linked()) continue;
      const Candidates candidates(model, problem, spec);
      const std::vector<CutCosts::Latency> none(spec.stages(), {0, 0});
      const double by_stages =
          stage_bound(model, candidates.costs(), generate(spec), none, best + 1000);
      ASSERT_LE(by_stages, best) << round;
      ++compared, equal += by_stages == best;
    }
  }
  EXPECT_GT(compared, 60);
  EXPECT_GT(equal, 10);  // the path through a stage is often the longest of all
}

TEST(ForwardSearch, ACertificateOfAnotherModeIsRefused) {
  std::mt19937 random(31);
  const Instance instance = random_forward(random, 0);
  const Answer answer = certified_search(instance.problem());
  ASSERT_TRUE(answer.certificate && answer.bound);
  Certificate trained = *answer.certificate;
  trained.layers.mode = Mode::Train;
  EXPECT_EQ(tool::certify(trained).refusal, "a schedule of another mode");
}

}  // namespace
}  // namespace pfeife
