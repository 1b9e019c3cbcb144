// The same runs planned from shapes with `plan.head: auto`.
#pragma once

#include "experiments/pfeife.h"
#include "experiments/studies/shared_head/runs.h"

namespace pfeife::shared_head {

/// The plan of the run's model on its devices, by 1F1B with the output layer on the last rank or by
/// a schedule whose ranks share it, with any cuts. Estimated; Planned::alternatives has both.
Planned planned_automatically(const PublishedStages& run, const Network& network);

}  // namespace pfeife::shared_head
