// Traces of real runs: what torch.profiler exports on each rank, and what pfeife writes.
//
// Actions are found by the names of their ranges:
//   "0F3", "1B0", "2I1", "2W1", "(4F4;3B0)OVERLAP_F_B"  the grammar of schedules, also behind
//   "PP:",
//                    as torch's schedules of several stages a rank name them;
//   "Forward 3", "Backward 3"       as torch's ScheduleGPipe does: of the rank's only stage;
//   "0SEND_F3", "1SEND_B3"          when a send is posted;
//   "Optimizer.step#..."            as torch's optimizers do.
// A range may contain more than the action's work, such as the wait for what it needs. So an action
// lasts from its first operator to its last one, communication left out; on GPUs it is the range as
// the profiler shows it on the device. Not read: memory, shapes, stacks.
#pragma once

#include <filesystem>
#include <vector>

#include "planner/ir/trace/observed_run.h"

namespace pfeife {

/// The ranks in one file: one of a profiler's, all of pfeife's trace.json (as measured). Errors:
/// ConfigError if the file ends too early, is no trace, or has no ranges of actions.
std::vector<ObservedRank> read_profile(const std::filesystem::path& file, std::size_t clock);

}  // namespace pfeife
