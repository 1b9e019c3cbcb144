// V-Half and V-Min (Qi, Wan et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024):
// two stages a rank in the shape of a V, backward split, about a half and a third of the
// activations of 1F1B.
//
//  1. The building block is repeated (building_block.h). Where F, I and W take equally long,
//  nothing
//     waits between the first microbatches and the last.
//  2. Before and behind, gaps are filled by what is ready (backfill.h), for these times, within
//  what
//     the repeated block holds from F to the end of W.
#include "planner/schedules/backfill.h"
#include "planner/schedules/building_block.h"
#include "planner/schedules/family.h"

namespace pfeife {

static Schedule repeated(const ScheduleSpec& spec, const BuildingBlock& block) {
  const Nanoseconds unit{1000};
  StageCosts costs = uniform_costs(spec.stages(), unit, unit, unit, Nanoseconds{0});
  for (StageCost& stage : costs.stages) stage.saved = stage.weight_saved = Bytes{1};
  const Placement placement = folded(spec);
  Order order = *block.repeated(spec.ranks, spec.microbatches);
  std::vector<Bytes> room;
  const OrderModel unlimited(costs, placement, spec.microbatches, {});
  for (std::size_t r = 0; r < spec.ranks; ++r)
    room.push_back(Bytes{most_held(unlimited, order, r)});
  const OrderModel model(costs, placement, spec.microbatches, room);
  return schedule_of(backfilled(model, std::move(order)).order);
}

static Family of_block(const char* name, const char* rule,
                       Schedule (*generate)(const ScheduleSpec&)) {
  return {.name = name,
          .rule = rule,
          .refuse = exactly_two_stages,
          .generate = generate,
          .placement = folded,
          .certified = false,
          .only_by_name = true};
}

Family v_half() {
  return of_block(
      "v_half", "two stages a rank in a V, backward split, half the activations of 1F1B",
      [](const ScheduleSpec& spec) { return repeated(spec, v_half_block(spec.ranks)); });
}

Family v_min() {
  return of_block("v_min",
                  "two stages a rank in a V, backward split, a third of the activations of 1F1B",
                  [](const ScheduleSpec& spec) { return repeated(spec, v_min_block(spec.ranks)); });
}

}  // namespace pfeife
