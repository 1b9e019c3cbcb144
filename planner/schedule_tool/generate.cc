#include "planner/schedule_tool/verbs.h"
#include "planner/schedules/families.h"

namespace pfeife::tool {

bool has_transfers(const Schedule& schedule) {
  for (const auto& row : schedule.rows)
    for (const Cell& cell : row)
      if (const auto* action = std::get_if<Action>(&cell); action && is_transfer(action->op))
        return true;
  return false;
}

Schedule generate_schedule(ScheduleSpec spec, bool loops_given) {
  if (const auto refused = refusal(spec); refused && refused->loops && !loops_given)
    spec.loops = *refused->loops;
  return generate(spec);
}

}  // namespace pfeife::tool
