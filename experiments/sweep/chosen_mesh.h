// A config with `parallel`: the mesh is chosen, and what is left is an experiment of one pipeline.
#pragma once

#include <filesystem>
#include <optional>

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/parallel_config.h"
#include "planner/mesh/mesh_search.h"

namespace pfeife {

/// Finds the mesh of `config`; progress goes to standard error unless `quiet`. Errors: ConfigError
/// at `parallel`.
MeshAnswer choose_mesh(const ParallelConfig& config, std::size_t threads, bool quiet);

/// Writes into `out`: meshes.csv; of the chosen mesh, if there is one, the folder "mesh"
/// and NAME.yaml, the experiment of its pipeline, whose path it returns.
std::optional<std::filesystem::path> write_mesh(const ParallelConfig& config,
                                                const MeshAnswer& answer,
                                                const std::filesystem::path& out);

/// The experiment of its pipeline, with the files that write_mesh() has written into `out`;
/// `inputs` has its layers and devices from the mesh itself.
Experiment mesh_experiment(const ParallelConfig& config, const MeshRun& run,
                           const std::filesystem::path& out, Inputs& inputs);

}  // namespace pfeife
