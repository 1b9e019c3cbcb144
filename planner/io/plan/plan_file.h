// plan.yaml and the files that it names.
#pragma once

#include <filesystem>
#include <string>

#include "planner/io/files/fields.h"
#include "planner/ir/result/plan.h"

namespace pfeife {

// The files that a plan's costs are made of, as plan.yaml has them.

/// What `format` of a model may be.
const Words<ModelFormat>& model_formats();

/// The key `parallel` of a config and of plan.yaml's files.
const FieldList<Replicas>& replica_fields();
Kind<Replicas> replicas_map();

/// `files` of plan.yaml.
Kind<PlanFiles> files_map();

// The bound of a plan, as plan.yaml has it.

/// `bound` of plan.yaml. `spec` = the plan's: its ranks and microbatches are those of all schedules
/// that the bound covers.
Kind<Bound> bound_map(const ScheduleSpec& spec);

// plan.yaml: a plan as a file, with its schedule in schedule.csv beside it.

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
