#include <algorithm>

#include "planner/ir/basics/error.h"
#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"
#include "planner/schedules/zb_greedy.h"

namespace pfeife::tool {

ScheduleSpec completed(ScheduleSpec spec, bool stages_per_rank_given) {
  if (const auto refused = refusal(spec);
      refused && refused->stages_per_rank && !stages_per_rank_given)
    spec.stages_per_rank = *refused->stages_per_rank;
  return spec;
}

Schedule generate_schedule(const ScheduleSpec& spec, bool stages_per_rank_given) {
  return generate(completed(spec, stages_per_rank_given));
}

Schedule build_schedule(const ScheduleSpec& spec, const UnitCosts& costs,
                        const std::vector<std::size_t>& most_in_flight) {
  if (const auto refused = refusal(spec)) throw ConfigError({}, to_string(*refused, spec));
  if (most_in_flight.size() > 1 && most_in_flight.size() != spec.ranks)
    throw ConfigError({}, "--memory is one number, or one for each of the " +
                              std::to_string(spec.ranks) + " ranks, not " +
                              std::to_string(most_in_flight.size()));
  const auto slices = static_cast<std::int64_t>(spec.slices);
  std::vector<Bytes> room;  // a slice of a stage in flight counts as one byte
  for (std::size_t r = 0; r < spec.ranks && !most_in_flight.empty(); ++r) {
    room.push_back(
        {slices * static_cast<std::int64_t>(most_in_flight[most_in_flight.size() == 1 ? 0 : r])});
    if (room.back() < Bytes{slices * static_cast<std::int64_t>(spec.stages_per_rank)})
      throw ConfigError({}, "--memory: a rank must hold one microbatch of each of its " +
                                std::to_string(spec.stages_per_rank) + " stages at least");
  }
  StageCosts stages = stage_costs_of(costs, spec.stages(), spec.slices);
  const auto hold_until_weight = [](StageCost& stage) {
    stage.saved = stage.weight_saved = Bytes{1};
  };
  std::ranges::for_each(stages.stages, hold_until_weight);
  for (StageCosts::Slice& slice : stages.slices)
    std::ranges::for_each(slice.stages, hold_until_weight);
  constexpr std::size_t kMoves = 6000;
  return schedule_of(
      zero_bubble_order(stages, placement_for(spec), spec.microbatches, room, {.moves = kMoves})
          .order,
      spec.slices);
}

}  // namespace pfeife::tool
