// report.html from records and the drawings in the cases' folders: cases of earlier runs need no
// traces.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/experiment_config.h"
#include "planner/io/results/results.h"

namespace pfeife {

/// The page for all cases, whose files are in `folder`. Traces are put in until they have 8 MiB; of
/// the other cases there are links to files. Errors: ConfigError if a file cannot be read.
std::string experiment_report(const Experiment& experiment, const std::vector<CaseRecord>& cases,
                              Inputs& inputs, const std::filesystem::path& folder);

/// What is the same in all cases, for headings: "vit_g14.pt2, a100_sxm4_40gb_x8, tf32, adam,
/// 24 samples a microbatch"; what differs is left out.
std::string experiment_summary(const Experiment& experiment, const std::vector<CaseRecord>& cases);

/// The plan (plan.yaml or its folder), predicted anew, beside the traces of a run of it, if there
/// are any: as for compare_with_traces. HTML that needs nothing else. Errors: ConfigError.
std::string plan_page(const std::filesystem::path& plan,
                      std::span<const std::filesystem::path> traces = {});

}  // namespace pfeife
