// A plan beside the traces of a run of it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/plans/evaluate.h"
#include "planner/ir/lost_time.h"
#include "planner/ir/observed_run.h"

namespace pfeife {

struct Comparison {
  Plan plan;
  Trace estimated;
  std::optional<Trace> simulated;  ///< as the plan's folder has it
  Measurement measurement;         ///< what the traces say
  std::vector<std::string> files;  ///< [clock]
  ObservedRun run;                 ///< without its steps
  LostTime lost;                   ///< of the step with the median time, against predicted()

  const Trace& predicted() const { return simulated ? *simulated : estimated; }
};

/// Reads a plan (plan.yaml or its folder) and the traces of its ranks: files of a profiler, or
/// folders of such, a file a rank, or a trace.json of ours. Without optimizer steps in the traces,
/// predictions are without them, too. Errors: ConfigError.
Comparison compare_with_traces(const std::filesystem::path& plan,
                               std::span<const std::filesystem::path> traces);

}  // namespace pfeife
