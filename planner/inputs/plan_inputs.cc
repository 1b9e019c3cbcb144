#include "planner/inputs/plan_inputs.h"

#include <algorithm>

#include "planner/cost/layers/linear_order.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/digest.h"
#include "planner/ir/basics/error.h"
#include "planner/mesh/replicated_layers.h"

namespace pfeife {

ModelFiles model_files(const Plan& plan, const std::filesystem::path& folder) {
  ModelFiles files = plan.files->model;
  const auto place = [&](std::filesystem::path& file) {
    file = (folder / file).lexically_normal();
  };
  place(files.file);
  if (files.skips) place(*files.skips);
  if (files.profile) place(*files.profile);
  return files;
}

ModelUse model_use(const Plan& plan) {
  return {.order = plan.linear_order,
          .precision = plan.training.precision,
          .optimizer = plan.training.optimizer,
          .microbatch_size = plan.training.microbatch_size,
          .replicas = plan.files->replicas,
          .mode = plan.training.mode,
          .microbatch_costs = plan.training.microbatch_costs};
}

PlanInputs read_plan_inputs(const Plan& plan, const std::filesystem::path& folder) {
  if (!plan.files) throw ConfigError({}, "plan.yaml names no files");
  const PlanFiles& files = *plan.files;
  const ModelFiles model = model_files(plan, folder);
  const auto same = [&](const std::filesystem::path& file, const std::string& digest,
                        const std::string& of_plan) {
    if (digest != of_plan)
      throw ConfigError({file.string()},
                        "is not the file that the plan was made from (another digest)");
  };
  const auto& known = linear_orders();
  if (model.format == ModelFormat::Pt2 && plan.linear_order != kCapturedInBlocks &&
      plan.linear_order != kCapturedInModules &&
      std::ranges::find(known, plan.linear_order) == known.end())
    throw ConfigError({}, "no order of layers is called '" + plan.linear_order + "'");
  PlanInputs inputs;
  const std::filesystem::path cluster = (folder / files.cluster).lexically_normal();
  inputs.cluster = read_cluster(cluster);
  same(cluster, inputs.cluster.digest, plan.cluster_digest);
  if (model.profile) same(*model.profile, sha256_file(*model.profile), files.profile_digest);
  inputs.layers = read_layers(model, inputs.cluster, model_use(plan));
  inputs.cluster =
      shared_by_replicas(with_measured_overheads(std::move(inputs.cluster), model), files.replicas);
  same(model.file, inputs.layers.digest, plan.model_digest);
  return inputs;
}

}  // namespace pfeife
