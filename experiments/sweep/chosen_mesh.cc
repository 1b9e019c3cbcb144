#include "experiments/sweep/chosen_mesh.h"

#include "experiments/show/mesh_table.h"
#include "experiments/show/progress.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/mesh_file.h"
#include "planner/io/files/atomic_file.h"
#include "planner/ir/request/pipeline.h"
#include "planner/mesh/mesh_price.h"

namespace pfeife {

MeshAnswer choose_mesh(const ParallelConfig& config, std::size_t threads, bool quiet) {
  const MeshSettings& mesh = *config.asked.mesh;
  Progress progress(1, quiet);
  progress.begin("meshes", 1, {"bounded and priced", 0, 1});
  try {
    MeshAnswer answer =
        find_mesh(mesh.question, mesh.network,
                  {.threads = threads, .progress = [&](double share) { progress.reached(share); }});
    progress.done("meshes");
    return answer;
  } catch (const ConfigError& error) {
    if (!error.where().file.empty()) throw;
    throw ConfigError(config.asked.place("parallel"), std::string("parallel: ") + error.what());
  }
}

std::optional<std::filesystem::path> write_mesh(const ParallelConfig& config,
                                                const MeshAnswer& answer,
                                                const std::filesystem::path& out) {
  const Network& network = config.asked.mesh->network;
  write_file(out / "meshes.csv", meshes_csv(answer, network));
  if (!answer.found()) return std::nullopt;
  const MeshRun& run = answer.priced.front().run;
  write_mesh_files(out / "mesh", run, network, config.architecture, config.hosts);
  const std::filesystem::path file = out / (config.name + ".yaml");
  write_file(file, pipeline_config(config, run));
  return file;
}

Experiment mesh_experiment(const ParallelConfig& config, const MeshRun& run,
                           const std::filesystem::path& out, Inputs& inputs) {
  Experiment experiment = pipeline_experiment(config, run, out);
  const Network& network = config.asked.mesh->network;
  inputs.know(experiment.cases.front(), pipeline_layers(pipeline_run(run), network),
              pipeline_cluster(run, network));
  return experiment;
}

}  // namespace pfeife
