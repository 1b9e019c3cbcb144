// Never worse than reference mode or simple cuts, and a plan wherever one of them has one: on those
// problems of the study whose models are small, with a small effort.
#include "experiments/planner_comparison/comparison.h"

#include <gtest/gtest.h>

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
    const Comparison result = compare(reader.read(spec), spec.microbatches, {1, 2}, 5);
    for (std::size_t k = 0; k < kOthers.size(); ++k) {
      const Planned& other = result.others[k];
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

}  // namespace
}  // namespace pfeife
