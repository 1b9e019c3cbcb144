// A config with the key `parallel`: which mesh is asked for. Every key is described in
// configs/REFERENCE.md.
//
// It is answered in two steps: planner/mesh chooses the mesh, and the rest of the config becomes an
// experiment of one pipeline of it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/io/experiment/experiment_config.h"
#include "planner/io/files/fields.h"
#include "planner/io/files/yaml.h"
#include "planner/ir/machine/mesh_run.h"
#include "planner/ir/machine/network.h"

namespace pfeife {

struct ParallelConfig {
  std::string name;                       ///< of the experiment, as read_experiment() has it
  CaseConfig asked;                       ///< with a mesh
  std::optional<Nanoseconds> step_below;  ///< as in Experiment
  std::vector<FigureSettings> figures = {};
  std::string architecture, hosts;  ///< texts of the two files, with replaced values
  YamlValue rest;  ///< keys of an experiment that are for the pipeline: plan, baselines, ...
};

/// The keys of `parallel` and of `training` of such a config; usual_mesh() has their defaults.
const FieldList<MeshQuestion>& mesh_fields();
const FieldList<MeshQuestion>& mesh_training_fields();

/// The keys of `model` of such a config, where it is a map, for the reference.
std::vector<FieldRow> mesh_model_rows();

/// The JSON Schema of a "config" (of a pipeline or of a mesh), "cluster" or "architecture", as text
/// for a file; empty for another kind.
std::string json_schema(const std::string& kind, const ExperimentRules& rules);

/// The numbers of devices that such a config lists, `parallel: {devices: [8, 16, 64]}`; empty if it
/// has but one. Errors: ConfigError.
std::vector<std::int64_t> listed_devices(const std::filesystem::path& file,
                                         const std::vector<std::string>& settings);

/// Nothing if the config has no key `parallel`. Applies `settings` as read_experiment() does.
/// Errors: ConfigError.
std::optional<ParallelConfig> read_parallel(const std::filesystem::path& file,
                                            const std::vector<std::string>& settings,
                                            const ExperimentRules& rules);

/// The experiment of one pipeline of `run`, whose files are in `folder`/mesh (mesh_file.h).
Experiment pipeline_experiment(const ParallelConfig& config, const MeshRun& run,
                               const std::filesystem::path& folder);
/// The same as a config in `folder`, for people.
std::string pipeline_config(const ParallelConfig& config, const MeshRun& run);

}  // namespace pfeife
