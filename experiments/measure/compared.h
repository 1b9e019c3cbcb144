// A plan beside the traces of a run of it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/plans/evaluate.h"
#include "planner/cost/estimate/priced_plan.h"
#include "planner/inputs/plan_inputs.h"
#include "planner/ir/trace/lost_time.h"
#include "planner/ir/trace/observed_run.h"

namespace pfeife {

/// A plan with what it was made from, and the steps of a run of it.
struct RunOfPlan : Contestant {  ///< simulated as the plan's folder has it
  std::filesystem::path file;    ///< plan.yaml
  PlanInputs inputs;
  DependencyGraph graph;           ///< task i = event i of every trace
  std::vector<std::string> files;  ///< [clock]
  ObservedRun run;
};

/// Reads a plan (plan.yaml or its folder) and the traces of its ranks: files of a profiler, or
/// folders of such, a file a rank, or a trace.json of ours. `simulated`: in the place of what the
/// plan's folder has. Errors: ConfigError.
RunOfPlan run_of_plan(const std::filesystem::path& plan,
                      std::span<const std::filesystem::path> traces,
                      const std::optional<Trace>& simulated = {});

struct Comparison : Contestant {   ///< as in RunOfPlan
  Measurement measurement;         ///< what the traces say
  std::vector<std::string> files;  ///< [clock]
  ObservedRun run;                 ///< without its steps
  LostTime lost;                   ///< of the step with the median time, against predicted()
};

/// Without optimizer steps in the traces, predictions are without them, too. Errors: as
/// run_of_plan.
Comparison compare_with_traces(const std::filesystem::path& plan,
                               std::span<const std::filesystem::path> traces,
                               const std::optional<Trace>& simulated = {});

}  // namespace pfeife
