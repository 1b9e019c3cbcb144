// Never worse than reference mode or simple cuts, and a plan wherever one of them has one: on those
// problems of the study whose models are small, with a small effort.
#include "tests/benchmarks/planner_comparison/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "planner/schedules/families.h"

namespace pfeife {
namespace {

TEST(Comparison, NeverWorseThanReferenceModeAndSimpleCuts) {
  InstanceReader reader(PFEIFE_SOURCE_DIR "/configs");
  std::size_t compared = 0, better = 0;
  for (const InstanceSpec& spec : all_instances()) {
    if (spec.model != "pipedream/alexnet" && spec.model != "pipedream/vgg16" &&
        spec.model != "pipedream/gnmt" && !spec.model.starts_with("piper/"))
      continue;
    const std::string name = spec.model + " on " + spec.cluster + ", " +
                             std::to_string(spec.ranks) + " x " + std::to_string(spec.microbatches);
    const PlannerComparison result = compare(reader.read(spec), spec.microbatches, {1, 2}, 5);
    for (std::size_t k = 0; k < kOthers.size(); ++k) {
      const JudgedPlan& other = result.others[k];
      if (!other.fits) continue;
      ASSERT_TRUE(result.ours.fits) << name << ": " << kOthers[k] << " has a plan";
      EXPECT_LE(result.ours.estimate, other.estimate)
          << name << ": " << kOthers[k] << " with " << other.plan;
      ++compared, better += result.ours.estimate < other.estimate;
    }
    if (result.bound) {
      EXPECT_LE(result.bound->time, result.ours.estimate) << name;
    }
  }
  EXPECT_GT(compared, 40U);  // the rest find no plan
  EXPECT_GT(better, 35U);
}

/// The plans of fewer stages a rank are among those of more: finding them must not take what most
/// of the effort is spent on, schedules that are out of the question.
TEST(Comparison, MoreStagesARankToChooseFromGiveNoSlowerPlan) {
  struct Case {
    InstanceSpec instance;
    std::int64_t mib;  // of every rank; 0 = what the devices have
  };
  InstanceReader reader(PFEIFE_SOURCE_DIR "/configs");
  std::vector<std::string> certified;
  for (const Family& family : families())
    if (family.certified) certified.push_back(family.name);
  for (const auto& [instance, mib] : {Case{{"sdxl_unet", "a100_sxm4_80gb_x8", 8, 16, 0}, 18511},
                                      Case{{"vit_g14_40", "a100_sxm4_80gb_x8", 8, 16, 0}, 7000},
                                      Case{{"densenet121", "3090_x8", 4, 8, 0}, 0}}) {
    InstanceReader::Instance read = reader.read(instance);
    if (mib > 0) std::ranges::fill(read.memory_limit, Bytes{mib << 20});
    std::vector<std::size_t> stages_per_rank;
    std::optional<Nanoseconds> before;
    for (std::size_t more = 1; more <= 3; ++more) {
      stages_per_rank.push_back(more);
      const Answer found = search(read.problem(search_set(instance.ranks, instance.microbatches,
                                                          stages_per_rank, certified)),
                                  {});
      ASSERT_FALSE(found.plans.empty()) << instance.model;
      EXPECT_LE(found.plans[0].estimate, before.value_or(found.plans[0].estimate))
          << instance.model << ", V<=" << more;
      before = found.plans[0].estimate;
    }
  }
}

}  // namespace
}  // namespace pfeife
