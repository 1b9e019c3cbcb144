#include "planner/inputs/plan_inputs.h"

#include <algorithm>

#include "planner/cost/layers/linear_order.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/digest.h"
#include "planner/ir/basics/error.h"
#include "planner/mesh/replicated_layers.h"

namespace pfeife {

ModelFiles model_files(const Plan& plan, const std::filesystem::path& folder) {
  const PlanFiles& files = *plan.files;
  const auto path = [&](const std::string& file) { return (folder / file).lexically_normal(); };
  const auto some = [&](const std::string& file) {
    return file.empty() ? std::nullopt : std::optional(path(file));
  };
  return {path(files.model),       files.format,
          files.time_unit,         some(files.skips),
          some(files.profile),     plan.linear_order,
          plan.training.precision, plan.training.optimizer,
          files.operators,         plan.training.microbatch_size,
          files.replicas};
}

PlanInputs read_plan_inputs(const Plan& plan, const std::filesystem::path& folder) {
  if (!plan.files) throw ConfigError({}, "plan.yaml names no files");
  const PlanFiles& files = *plan.files;
  const auto path = [&](const std::string& file) { return (folder / file).lexically_normal(); };
  const auto same = [&](const std::string& file, const std::string& digest,
                        const std::string& of_plan) {
    if (digest != of_plan)
      throw ConfigError({path(file).string()},
                        "is not the file that the plan was made from (another digest)");
  };
  const auto& known = linear_orders();
  if (files.format == ModelFormat::Pt2 &&
      std::ranges::find(known, plan.linear_order) == known.end())
    throw ConfigError({}, "no order of layers is called '" + plan.linear_order + "'");
  PlanInputs inputs;
  inputs.cluster = read_cluster(path(files.cluster));
  same(files.cluster, inputs.cluster.digest, plan.cluster_digest);
  if (!files.profile.empty())
    same(files.profile, sha256_file(path(files.profile)), files.profile_digest);
  const ModelFiles model = model_files(plan, folder);
  inputs.layers = read_layers(model, inputs.cluster);
  inputs.cluster =
      shared_by_replicas(with_measured_overheads(std::move(inputs.cluster), model), files.replicas);
  same(files.model, inputs.layers.digest, plan.model_digest);
  return inputs;
}

}  // namespace pfeife
