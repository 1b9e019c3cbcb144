#include "experiments/sweep/products.h"

#include <map>

#include "experiments/inputs/inputs.h"
#include "experiments/show/mesh_table.h"
#include "experiments/sweep/chosen_mesh.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_file.h"
#include "planner/io/experiment/parallel_config.h"
#include "planner/ir/basics/error.h"
#include "planner/mesh/mesh_layers.h"

namespace pfeife {
namespace {

/// Each product once, by precision and shape.
class ProductList {
 public:
  void add(const std::vector<ProductUse>& uses) {
    for (const ProductUse& use : uses) uses_.try_emplace({use.precision, use.shape}, use);
  }
  std::string text(bool missing) const {
    std::vector<ProductUse> list;
    for (const auto& [key, use] : uses_)
      if (!missing || use.source != ProductSource::Measured) list.push_back(use);
    return products_text(list);
  }

 private:
  std::map<std::pair<std::string, ProductShape>, ProductUse> uses_;
};

void add_meshes(const ParallelConfig& config, const ProductsQuestion& question, std::size_t threads,
                ProductList& list) {
  const MeshAnswer answer = choose_mesh(config, threads, true);
  for (const MeshOutcome* mesh : best_of_meshes(answer, question.meshes))
    list.add(mesh_products(mesh->run, config.asked.mesh->network));
}

}  // namespace

std::string products_of(const ProductsQuestion& question, std::size_t threads) {
  Inputs inputs;
  ProductList list;
  const ExperimentRules rules = rules_of(inputs);
  std::vector<std::vector<std::string>> settings;
  for (const std::int64_t count : listed_devices(question.config, question.settings)) {
    settings.push_back(question.settings);
    settings.back().push_back("parallel.devices=" + std::to_string(count));
  }
  if (settings.empty()) settings.push_back(question.settings);
  for (const std::vector<std::string>& of_count : settings) {
    if (const auto parallel = read_parallel(question.config, of_count, rules)) {
      add_meshes(*parallel, question, threads, list);
      continue;
    }
    for (const CaseConfig& config : read_experiment(question.config, of_count, rules).cases)
      for (const DeviceKind& kind : inputs.cluster(config).kinds)
        list.add(archive_products(config.model, model_use(config), kind));
  }
  return list.text(question.missing);
}

}  // namespace pfeife
