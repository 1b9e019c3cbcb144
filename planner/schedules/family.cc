#include "planner/schedules/family.h"

namespace pfeife {

Placement round_robin(const ScheduleSpec& spec) { return round_robin(spec.stages(), spec.ranks); }
Placement folded(const ScheduleSpec& spec) { return v_shape(spec.ranks); }

static std::optional<Refusal> refuse_loops(const ScheduleSpec& spec, const char* allowed,
                                           std::size_t nearest_loops) {
  return Refusal{std::string("it needs ") + allowed + " a rank, not " + std::to_string(spec.loops),
                 {},
                 nearest_loops};
}

std::optional<Refusal> one_stage_a_rank(const ScheduleSpec& spec) {
  if (spec.loops == 1) return std::nullopt;
  return refuse_loops(spec, "one stage", 1);
}

std::optional<Refusal> at_least_two_loops(const ScheduleSpec& spec) {
  if (spec.loops >= 2) return std::nullopt;
  return refuse_loops(spec, "two stages or more", 2);
}

std::optional<Refusal> exactly_two_loops(const ScheduleSpec& spec) {
  if (spec.loops == 2) return std::nullopt;
  return refuse_loops(spec, "two stages", 2);
}

}  // namespace pfeife
