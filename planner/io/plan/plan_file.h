// plan.yaml: a plan as a file, with its schedule in schedule.csv beside it.
#pragma once

#include <filesystem>
#include <string>

#include "planner/ir/result/plan.h"

namespace pfeife {

/// The text of plan.yaml; `schedule_digest` = SHA-256 of schedule.csv's bytes.
/// Equal plans give equal bytes.
std::string plan_text(const Plan& plan, const std::string& schedule_digest);

/// Writes FOLDER/schedule.csv, then FOLDER/plan.yaml. Errors: RuntimeFault.
void write_plan(const std::filesystem::path& folder, const Plan& plan);

/// plan.yaml of a plan that is named by its folder; the name itself otherwise.
std::filesystem::path plan_file(const std::filesystem::path& named);

/// Reads a plan and the schedule beside it. Errors: ConfigError with the place,
/// also if the schedule is not the one that the plan was written with, or if
/// the two disagree in ranks, stages or microbatches.
Plan read_plan(const std::filesystem::path& file);

}  // namespace pfeife
