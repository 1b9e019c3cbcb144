// More schedules to choose from never make the plan slower, and leave no bound behind.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/schedule_tool/certify.h"
#include "planner/schedules/families.h"
#include "planner/search/bound/any_order.h"
#include "planner/search/search.h"
#include "tests/support/synthetic_models.h"

namespace pfeife {
namespace {

/// The synthetic ViT on `ranks` equal devices with ample memory.
struct Vit {
  explicit Vit(std::size_t ranks) : cluster(synthetic_cluster(ranks, 180, 6000)) {
    for (std::size_t r = 0; r < ranks; ++r) {
      problem.device_of_rank.emplace_back(static_cast<std::int64_t>(r));
      problem.memory_limit.emplace_back(std::int64_t{1} << 45);
    }
    for (const Family& family : families())
      if (family.certified) names.push_back(family.name);
  }
  const Layers layers = synthetic_vit();
  const Cluster cluster;
  Problem problem{.layers = layers, .cluster = cluster};
  std::vector<std::string> names;
};

TEST(Search, PlansAreNotSlowerWhereMoreLoopsMayBeChosen) {
  constexpr std::size_t kRanks = 8, kMicrobatches = 16;
  Vit vit(kRanks);
  Nanoseconds best = Nanoseconds::max();
  std::vector<std::size_t> stages_per_rank;
  for (const std::size_t v : {1U, 2U, 3U}) {
    stages_per_rank.push_back(v);
    vit.problem.schedules = search_set(kRanks, kMicrobatches, stages_per_rank, vit.names);
    const Answer outcome = search(vit.problem, {.iterations = 100});
    ASSERT_FALSE(outcome.plans.empty());
    EXPECT_LE(outcome.plans[0].estimate, best) << v;
    best = outcome.plans[0].estimate;
  }
}

// Schedules without a tree of their own are proven whatever their order.
TEST(Search, HasACertificateAndNoBoundBelowThatOfAnyOrderHoweverSmallTheBudget) {
  constexpr std::size_t kRanks = 16, kMicrobatches = 32;
  Vit vit(kRanks);
  vit.problem.schedules =
      search_set(kRanks, kMicrobatches, std::vector<std::size_t>{2, 3}, vit.names);
  const Answer outcome = search(vit.problem, {.iterations = 1, .certificate = true});
  ASSERT_TRUE(outcome.certificate);
  EXPECT_EQ(outcome.certificate->bound, outcome.bound->time.count());
  EXPECT_GT(std::ranges::count(outcome.certificate->proofs, true, &CertifiedProof::any_order), 0);
  EXPECT_LT(std::ranges::count(outcome.certificate->proofs, true, &CertifiedProof::any_order),
            static_cast<std::ptrdiff_t>(vit.problem.schedules.size()));
  EXPECT_EQ(tool::certify(*outcome.certificate).refusal, "");
  double least = 1e18;
  for (const ScheduleSpec& spec : vit.problem.schedules)
    least = std::min(
        least, AnyOrder(CutModel(vit.layers, vit.cluster, MemoryRule::Lifetimes), vit.problem, spec)
                   .bound());
  EXPECT_GE(static_cast<double>(outcome.bound->time.count()), least);
}

}  // namespace
}  // namespace pfeife
