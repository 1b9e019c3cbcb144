#include "experiments/sweep/single_case.h"

#include "experiments/inputs/inputs.h"
#include "planner/io/experiment/parallel_config.h"

namespace pfeife {

Request SingleCase::request() const {
  Request request = config;
  request.baselines.clear();
  request.simulate = request.measure = false;
  request.select_by.reset();
  return request;
}

Planned SingleCase::planned(const Request& request, std::size_t threads) const {
  return with_places(config, [&] {
    Planned planned = plan(model, cluster, request, {.threads = threads});
    planned.best();
    return planned;
  });
}

SingleCase read_single_case(const std::filesystem::path& file,
                            const std::vector<std::string>& settings, const std::string& verb) {
  Inputs inputs;
  const ExperimentRules rules = rules_of(inputs);
  if (read_parallel(file, settings, rules))
    throw ConfigError({file.string()},
                      "chooses a mesh, and " + verb +
                          " takes the config of one pipeline; run the config, then give " + verb +
                          " the pipeline's own config, results/NAME/NAME.yaml");
  Experiment experiment = read_experiment(file, settings, rules);
  if (experiment.cases.size() != 1)
    throw ConfigError({file.string()},
                      "has " + std::to_string(experiment.cases.size()) + " cases, and " + verb +
                          " takes one; give each key one value, as in --set cases.devices=4");
  CaseConfig& config = experiment.cases.front();
  for (const auto& [measured, key] : {std::pair{config.cluster_measured, "cluster"},
                                      std::pair{config.profile_measured, "profile"}})
    if (measured)
      throw ConfigError(config.place(key), std::string(key) + ": " + verb +
                                               " measures nothing; name the file that a run of "
                                               "the config has made");
  Model model = load_model(config.model);
  Cluster cluster = inputs.as_published(config);
  return {std::move(config), std::move(model), std::move(cluster)};
}

}  // namespace pfeife
