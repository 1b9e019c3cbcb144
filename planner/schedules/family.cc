#include "planner/schedules/family.h"

namespace pfeife {

Placement round_robin(const ScheduleSpec& spec) { return round_robin(spec.stages(), spec.ranks); }
Placement folded(const ScheduleSpec& spec) { return v_shape(spec.ranks); }

static std::optional<Refusal> refuse_stages_per_rank(const ScheduleSpec& spec, const char* allowed,
                                                     std::size_t nearest_stages_per_rank) {
  return Refusal{
      std::string("it needs ") + allowed + " a rank, not " + std::to_string(spec.stages_per_rank),
      {},
      nearest_stages_per_rank};
}

std::optional<Refusal> one_stage_a_rank(const ScheduleSpec& spec) {
  if (spec.stages_per_rank == 1) return std::nullopt;
  return refuse_stages_per_rank(spec, "one stage", 1);
}

std::optional<Refusal> at_least_two_stages(const ScheduleSpec& spec) {
  if (spec.stages_per_rank >= 2) return std::nullopt;
  return refuse_stages_per_rank(spec, "two stages or more", 2);
}

std::optional<Refusal> exactly_two_stages(const ScheduleSpec& spec) {
  if (spec.stages_per_rank == 2) return std::nullopt;
  return refuse_stages_per_rank(spec, "two stages", 2);
}

}  // namespace pfeife
