// Meshes beside one another: which won, and why the next best did not.
#pragma once

#include <string>
#include <vector>

#include "planner/mesh/mesh_search.h"
#include "plots/screen/table.h"

namespace pfeife {

/// The best of each mesh, at most so many: the fastest first, what does not fit behind them.
std::vector<const MeshOutcome*> best_of_meshes(const MeshAnswer& answer, std::size_t most);

/// The best mesh and the next few (each the best of its sizes), with why they lost; what was tried;
/// the bound. All figures are estimated. Of the options, width and colour.
std::string mesh_table(const MeshQuestion& question, const MeshAnswer& answer,
                       const Network& network, const ScreenOptions& options);

/// What was not searched, and what of the model is not planned; below the table, too.
std::string mesh_limits(const MeshQuestion& question, std::size_t width);

/// Every mesh that was priced, a line each.
std::string meshes_csv(const MeshAnswer& answer, const Network& network);

/// "tp 4, pp 2, dp 2, mb 1 +rec full zero 1": sizes above 1, and what else was chosen.
std::string mesh_text(const MeshRun& run);
double gib(Bytes bytes);  ///< GiB
double tokens_per_second(const MeshOutcome& outcome);
/// FLOPs of the model for a step (model_flops_per_token()) over the step and the peak of all
/// devices.
double model_flops_utilization(const MeshOutcome& outcome, const Network& network);

}  // namespace pfeife
