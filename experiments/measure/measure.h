// Plans run for real: the third column.
#pragma once

#include <filesystem>
#include <functional>
#include <span>

#include "experiments/inputs/inputs.h"
#include "experiments/plans/evaluate.h"

namespace pfeife {

/// Refuses, before anything starts, cases that this machine cannot measure: without pfeife-run,
/// with more ranks than processors (they would take turns, and the times would mean nothing), or
/// with devices that are no processors. Errors: ConfigError.
void check_measurable(const Experiment& experiment, Inputs& inputs);

/// One round of one plan: trains FOLDER/plan.yaml for the config's number of steps, leaves
/// measurement.csv in FOLDER, and fills plan.measurement and plan.others; if the run failed,
/// plan.measure_failure says why.
void measure_plan(Evaluation& plan, const std::filesystem::path& folder);

/// Plans of the case of `config`, in CASE/<plan>, take turns in rounds (what disturbs the machine
/// for a while then falls on all of them) until every median is known as well as the config asks,
/// or for as many rounds as it allows. The first of a round is another one each time. Fills what
/// measure_plan fills, from all rounds together; a plan of which one run fails has no measurement.
/// The intervals are looked at after each round, which makes them a little narrower than one look
/// would.
///
/// The machine is not always as it was when the model was profiled. So a profile that was measured
/// here is taken anew, a share in each round, and the same plans are estimated with it:
/// Evaluation::anew. Errors: RuntimeFault if that profile fails.
void measure_in_rounds(std::span<Evaluation* const> plans, const std::filesystem::path& case_folder,
                       const CaseConfig& config, Inputs& inputs,
                       const std::function<void(double)>& progress = {});

}  // namespace pfeife
