// A plan's folder: what is written of it but its drawings and its proof.
#pragma once

#include <filesystem>

#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/stage_costs.h"

namespace pfeife {

/// The files that the costs of plans are made of, by absolute paths; `cluster` = where the
/// cluster's text lies. Errors: ConfigError if one cannot be read.
PlanFiles plan_files(const ModelFiles& model, const Replicas& replicas,
                     const std::filesystem::path& cluster);
/// The same by their paths from a folder.
PlanFiles seen_from(PlanFiles files, const std::filesystem::path& folder);

/// Writes plan.yaml, schedule.csv, stages.csv and split_points.json, and, where
/// torch.distributed.pipelining can run the plan, schedule_torch.csv and run_in_torch.py. What
/// another plan had left there beside those goes, its certificate too. Errors: RuntimeFault.
void write_plan_folder(const std::filesystem::path& folder, const Plan& plan,
                       const StageCosts& costs, const Layers& layers);

}  // namespace pfeife
