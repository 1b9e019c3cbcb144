// A plan in the words of others: frameworks that train it, simulators that replay it.
//   for (const std::string& framework : export_names()) std::puts(framework.c_str());
//
// Each row of the table is a writer, one file here each: plan values go in, texts come out. What a
// framework cannot run of a plan is an error, never a comment. What a framework runs:
// planner/ir/request/framework.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/model/layers.h"
#include "planner/ir/result/plan.h"
#include "planner/ir/schedule/stage_costs.h"
#include "planner/ir/trace/trace.h"

namespace pfeife {

/// What is known of a plan, borrowed for the call.
struct PlanToExport {
  const Plan& plan;
  const Layers& layers;
  const StageCosts& costs;
  const Trace& step;  ///< as simulated, or estimated
  /// Degrees of parallelism and batch; of an architecture, else of a pipeline and its replicas.
  const MeshRun& run;
  bool of_architecture = false;
  std::int64_t devices_per_host = 0;  ///< of the cluster; 0 = unknown
};

struct ExportedFile {
  std::string name;
  std::string text;  ///< or bytes
  friend bool operator==(const ExportedFile&, const ExportedFile&) = default;
};
struct Exported {
  std::vector<ExportedFile> files;     ///< the first one names the others
  std::vector<std::string> lost = {};  ///< a sentence for each part of the model left out
  /// Reasons for which the framework cannot run the plan; empty in what export_plan() returns.
  std::vector<std::string> refused = {};
  friend bool operator==(const Exported&, const Exported&) = default;
};

/// The names of the table.
std::vector<std::string> export_names();
/// Errors: ConfigError for a name that is not there, and for a plan or a model that the framework
/// cannot run, with every reason.
Exported export_plan(const std::string& name, const PlanToExport& planned);

/// The run of a plan whose model is no architecture: its ranks and replicas.
MeshRun run_of_pipeline(const Plan& plan);

}  // namespace pfeife
