// Peaks that stages of other cuts promise, against the full evaluation of the cuts themselves.
#include "planner/search/price/known_stages.h"

#include <gtest/gtest.h>

#include "planner/cost/estimate/evaluate.h"
#include "tests/search/random_problem.h"

namespace pfeife {
namespace {

TEST(KnownStages, BoundPeaksOfCutsThatWereNotSeenFromStagesThatWere) {
  std::mt19937 random(23);
  int asked = 0, reached = 0, sharper = 0, several = 0, unknown = 0, nothing_waits = 0;
  for (int round = 0; round < 1500; ++round) {
    RandomShape shape;
    shape.layers = 6 + random() % 5;
    shape.shared_parameters = random() % 2 == 0;
    if (round % 2 == 0) shape.skip_share = 0;
    Layers layers = random_layers(random, shape);
    if (random() % 2 == 0)  // so that forwards are among the highest moments
      for (Layer& layer : layers.layers)
        layer.temporary = {random() % 2 == 0 ? Bytes{900} : Bytes{0}, {}, {}, {}};
    if (shape.shared_parameters)
      layers.parameters.push_back({"tied",
                                   Bytes{300},
                                   Bytes{300},
                                   Bytes{600},
                                   {LayerId{1}, LayerId{shape.layers - 2}},
                                   {Nanoseconds{50}, Nanoseconds{80}}});
    const std::size_t ranks = 1 + random() % 4;
    const Cluster cluster = random_cluster(random, ranks, true);
    const ScheduleSpec spec = random_spec(random, ranks, 1 + random() % 6, {1, 2});
    const Schedule schedule = generate(spec);
    const Placement placement = placement_for(spec);
    const CutModel model(layers, cluster, MemoryRule::Lifetimes);
    if (model.last() < static_cast<std::int32_t>(spec.stages())) continue;
    const LiveMemory live(schedule, placement);
    KnownStages known(model, placement);
    std::vector<Partition> all;
    for_each_partition(layers, spec.stages(), [&](const Partition& p) { all.push_back(p); });
    std::ranges::shuffle(all, random);
    for (std::size_t k = 0; k < std::min<std::size_t>(all.size(), 20); ++k) {
      const Cuts cuts = *model.cuts(all[k]);
      const Prices plan = evaluate(layers, cluster, schedule, placement, all[k]);
      for (std::size_t r = 0; r < ranks; ++r) {
        const std::optional<double> peak = known.peak(live, cuts, r);
        unknown += !peak;
        if (!peak) continue;
        const auto exact = static_cast<double>(plan.peak_memory[r].value);
        EXPECT_LE(*peak, exact) << "round " << round << " rank " << r;
        // One microbatch, one stage and no skips: nothing waits, so all that is held is known.
        if (spec.microbatches == 1 && live.stages(r).size() == 1 && shape.skip_share == 0) {
          ++nothing_waits;
          EXPECT_EQ(*peak, exact) << "round " << round << " rank " << r;
        }
        ++asked, reached += *peak == exact, several += live.stages(r).size() > 1;
        sharper += *peak > live.peak(model, cuts, r);
      }
      known.learn(cuts, plan.costs);
    }
  }
  EXPECT_GT(asked, 5000);
  EXPECT_GT(nothing_waits, 500);
  EXPECT_GT(several, 2000);
  EXPECT_GT(unknown, 2000);
  EXPECT_GT(sharper, asked / 2);
  EXPECT_GT(reached, asked / 10);
}

}  // namespace
}  // namespace pfeife
