// The writers of the table in plan_export.cc, each in a file of its name.
#pragma once

#include "planner/io/plan/plan_export.h"

namespace pfeife {

/// split_points.json; where torch.distributed.pipelining can run the plan, schedule_torch.csv and
/// run_in_torch.py, too.
Exported export_for_torch(const PlanToExport& planned);
/// megatron_args.sh: flags for Megatron-LM as a bash array.
Exported export_for_megatron(const PlanToExport& planned);
/// torchtitan_plan.py, a config of a run, and the rows as schedule_torchtitan.csv.
Exported export_for_torchtitan(const PlanToExport& planned);
/// automodel.yaml, sections of a recipe, and the rows as schedule_automodel.csv.
Exported export_for_automodel(const PlanToExport& planned);
/// deepspeed_plan.py, which makes a PipelineModule.
Exported export_for_deepspeed(const PlanToExport& planned);
/// plan.RANK.et: a Chakra execution trace of each rank's step.
Exported export_for_chakra(const PlanToExport& planned);

}  // namespace pfeife
