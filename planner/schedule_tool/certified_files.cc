// Whether a certificate and a plan are of the costs that the files named by the plan make.
#include "planner/cost/linear_order.h"
#include "planner/cost/priced_plan.h"
#include "planner/cost/recomputed_layers.h"
#include "planner/cost/stage_costs.h"
#include "planner/inputs/read_layers.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/digest.h"
#include "planner/io/plan/certificate_file.h"
#include "planner/ir/error.h"
#include "planner/ir/validate.h"
#include "planner/schedule_tool/certify.h"

namespace pfeife::tool {
namespace {

using Folder = std::filesystem::path;

/// What the files make; ConfigError if one is not there, or is not the one of the plan.
struct Costs {
  Cluster cluster;
  Layers layers;

  Costs(const Plan& plan, const Folder& folder) {
    const PlanFiles& files = *plan.files;
    const auto path = [&](const std::string& file) { return (folder / file).lexically_normal(); };
    const auto same = [&](const std::string& file, const std::string& digest,
                          const std::string& of_plan) {
      if (digest != of_plan)
        throw ConfigError({path(file).string()},
                          "is not the file that the plan was made from (another digest)");
    };
    const auto some = [&](const std::string& file) {
      return file.empty() ? std::nullopt : std::optional(path(file));
    };
    const auto& known = linear_orders();
    if (files.format == ModelFormat::Pt2 && std::ranges::find(known, plan.order) == known.end())
      throw ConfigError({}, "no order of layers is called '" + plan.order + "'");
    cluster = read_cluster(path(files.cluster));
    same(files.cluster, cluster.digest, plan.cluster_digest);
    if (!files.profile.empty())
      same(files.profile, sha256_file(path(files.profile)), files.profile_digest);
    layers = read_layers({path(files.model), files.format, files.time_unit, some(files.skips),
                          some(files.profile), plan.order, plan.training.precision,
                          plan.training.optimizer, files.operators, plan.training.microbatch_size},
                         cluster);
    same(files.model, layers.digest, plan.model_digest);
  }
};

/// What the costs make otherwise than the plan says; "" = nothing.
std::string other_plan(const Plan& plan, const Layers& layers, const Cluster& cluster) {
  for (const DeviceId device : plan.placement.device_of_rank)
    if (device.index() >= cluster.devices()) return "a device that the cluster does not have";
  const std::string illegal = illegal_because(layers, plan.partition) +
                              illegal_because(layers, plan.partition, plan.blocks);
  if (!illegal.empty()) return illegal;
  const StageCosts costs =
      stage_costs(layers, plan.partition, plan.placement, cluster, plan.recompute, plan.blocks);
  const auto wrong = validate(plan.schedule, {stage_graph(costs), plan.spec.microbatches});
  if (!wrong.empty()) return "its schedule is wrong: " + wrong.front().message;
  const auto priced = priced_plan(plan, true, layers, cluster);
  const auto* const found = std::get_if<PricedPlan>(&priced);
  if (found == nullptr) return "its schedule does not end";
  if (found->plan.estimate != plan.estimate)
    return stream_all("the plan takes ", found->plan.estimate.count(), " ns, not ",
                      plan.estimate.count());
  return found->plan == plan ? "" : "memory, order or names of the cuts are others";
}

}  // namespace

FromFiles compare_with_files(const Certificate& c, const Plan& plan, const Folder& folder) {
  if (!plan.files || !plan.bound) return {"plan.yaml names no files", ""};
  std::optional<Costs> costs;
  try {
    costs.emplace(plan, folder);
  } catch (const ConfigError& error) {
    return {error.what(), ""};
  }
  if (const std::string other = other_plan(plan, costs->layers, costs->cluster); !other.empty())
    return {"", "the plan is not of the files that it names: " + other};
  const Layers& all = costs->layers;
  Certificate anew =
      certified_problem(plan.bound->given_cuts ? cut_only_at(plan.partition, all) : all,
                        costs->cluster, plan.placement.device_of_rank, c.memory_limit, c.recompute);
  anew.bound = c.bound, anew.proofs = c.proofs;
  if (certificate_text(anew) != certificate_text(c))
    return {"",
            "it is of other costs or legal cuts than the files make that the plan names (by this "
            "program)"};
  return {};
}

}  // namespace pfeife::tool
