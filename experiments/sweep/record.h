// From evaluated plans to what is kept: the case's record, and the files of each plan.
#pragma once

#include <filesystem>

#include "experiments/plans/case_record.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/io/results/results.h"

namespace pfeife {

/// The record of the case of `config`: the chosen plan first, then the baselines, then the plan
/// with less memory, if there is one.
CaseRecord record_of(const EvaluatedCase& evaluated, const CaseConfig& config);

/// Writes FOLDER/<plan>/{plan.yaml, schedule.csv, split_points.json, schedule_torch.csv} of the
/// kept plans, and certificate.txt, the proof of the bound (or that nothing fits), in
/// FOLDER/planned; what earlier runs wrote of other plans goes. A cluster in whose file `values`
/// are replaced is written, too. Errors: RuntimeFault.
void write_plans(const std::filesystem::path& folder, EvaluatedCase& evaluated,
                 const Replaced& values);
/// Writes {timeline.svg, trace.json}, with the traces of all engines that ran.
void write_drawings(const std::filesystem::path& folder, const EvaluatedCase& evaluated);

}  // namespace pfeife
