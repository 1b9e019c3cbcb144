// Random lowered schedules, for tests that compare engines: any placement, skips, tied stages,
// split backwards, overlaps, transfers anywhere, and sometimes an order that deadlocks.
#pragma once

#include <random>

#include "planner/ir/schedule/schedule.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife::testing {

struct RandomProgram {
  Schedule schedule;  ///< lowered; complete, every SEND with its RECV
  StageCosts costs;
  Placement placement;
  Nanoseconds launch{0};
};

/// One to four ranks, up to six stages and four microbatches. Equal seeds give equal programs.
RandomProgram random_program(std::uint64_t seed);

/// The same for the stages of a given model: one to four ranks, but no more than stages. Some
/// cannot run or do not match: overlaps of what waits for each other, transfers in another order.
RandomProgram random_program_for(const StageGraph& stages, std::uint64_t seed);

}  // namespace pfeife::testing
