// What holds for every schedule whatever the costs: bounds, monotony, and names that do not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/schedules/timed.h"

namespace pfeife {
namespace {

StageCosts random_costs(std::size_t stages, std::mt19937& random) {
  StageCosts costs = uniform_costs(stages, {}, {}, {}, {});
  for (StageCost& s : costs.stages)
    s.forward = Nanoseconds{random() % 100}, s.backward_input = Nanoseconds{random() % 100},
    s.backward_weight = Nanoseconds{random() % 100};
  for (StagePair& p : costs.pairs)
    p.forward_time = Nanoseconds{random() % 30}, p.backward_time = Nanoseconds{random() % 30};
  return costs;
}

template <class Visitor>
void for_each_point(Visitor&& visit) {
  std::mt19937 random(5);
  for (const ScheduleSpec& spec : search_set(4, 8, std::vector<std::size_t>{1, 2, 3}))
    visit(spec, random_costs(spec.stages(), random));
}

TEST(Properties, NoStepIsShorterThanItsBusiestRankOrOneMicrobatchThroughAllStages) {
  for_each_point([](const ScheduleSpec& spec, const StageCosts& costs) {
    const Trace trace = timed(spec, costs);
    Nanoseconds path{0};
    for (const StageCost& stage : costs.stages) path += stage.forward + stage.backward_input;
    EXPECT_GE(step_time(trace), path) << spec.family;
    for (std::size_t r = 0; r < spec.ranks; ++r)
      EXPECT_GE(step_time(trace), busy_time(trace, RankId{r})) << spec.family;
  });
}

TEST(Properties, LongerTransfersNeverShortenARunWithoutContention) {
  for_each_point([](const ScheduleSpec& spec, const StageCosts& costs) {
    const Placement placement = placement_for(spec);
    const Schedule lowered = lower(generate(spec), costs, placement);
    const auto time = [&](const StageCosts& with) {
      return step_time(
          std::get<Trace>(estimate(dependencies(lowered, stage_graph(with), placement, {}), with)));
    };
    for (std::size_t p = 0; p < costs.pairs.size(); ++p) {
      StageCosts slower = costs;
      slower.pairs[p].forward_time += Nanoseconds{13};
      EXPECT_GE(time(slower), time(costs)) << spec.family;
    }
  });
}

// Rows in another order are the same pipeline on renamed ranks.
TEST(Properties, NamesOfRanksDoNotMatter) {
  for_each_point([](const ScheduleSpec& spec, const StageCosts& costs) {
    Schedule renamed = generate(spec);
    std::rotate(renamed.rows.begin(), renamed.rows.begin() + 1, renamed.rows.end());
    const Placement placement = placement_of(renamed).value();
    const Schedule lowered = lower(renamed, costs, placement);
    const auto answer = estimate(dependencies(lowered, stage_graph(costs), placement, {}), costs);
    EXPECT_EQ(step_time(std::get<Trace>(answer)), step_time(timed(spec, costs))) << spec.family;
  });
}

}  // namespace
}  // namespace pfeife
