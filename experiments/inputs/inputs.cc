#include "experiments/inputs/inputs.h"

#include "experiments/machine/machine.h"
#include "planner/cost/layers/linear_order.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/digest.h"
#include "planner/ir/request/calibrated.h"
#include "planner/ir/request/framework.h"
#include "planner/mesh/replicated_layers.h"

namespace pfeife {
namespace {

/// A cluster's file and what is replaced in it.
std::string key_of(const std::filesystem::path& file, const Replaced& replaced) {
  std::string key = file.string();
  for (const auto& [path, value] : replaced) key += "\n" + path + ": " + to_text(value);
  return key;
}

/// What the layers of a case are made from, its cluster apart.
std::string layers_key(const ModelFiles& model, const ModelUse& use) {
  std::string key = model.file.string() + "\n" + to_string(model.format) + "\n" +
                    to_string(use.precision) + "\n" + to_string(use.optimizer) + "\n" +
                    std::to_string(use.microbatch_size.value_or(0)) + "\n" +
                    std::to_string(model.time_unit.count()) + "\n" + use.order + "\n";
  if (model.skips) key += model.skips->string();
  if (model.profile) key += "\n" + model.profile->string();
  for (const OperatorCost& cost : model.operators)
    key += "\n" + cost.op + "\n" + cost.flops + "\n" + cost.bytes;
  for (const std::int64_t number :
       {use.replicas.count, std::int64_t{use.replicas.zero},
        std::int64_t{use.replicas.overlap_reductions}, static_cast<std::int64_t>(use.mode)})
    key += "\n" + std::to_string(number);
  for (const MicrobatchScale& scale : use.microbatch_costs) key += "\n" + to_string(scale);
  for (const std::vector<std::int64_t>& documents : use.lengths) {
    key += "\nlengths";
    for (const std::int64_t length : documents) key += " " + std::to_string(length);
  }
  return key;
}

}  // namespace

CaseConfig with_request(CaseConfig config, const Request& request) {
  static_cast<Request&>(config) = request;
  return config;
}

ModelUse model_use(const Request& request) {
  std::string order = request.plan.order == "search" ? "captured" : request.plan.order;
  const Framework* const made_for = framework(request.plan.framework);
  if (request.plan.cuts_at == PlanSettings::CutsAt::Blocks)
    order =
        made_for != nullptr && made_for->between_modules ? kCapturedInModules : kCapturedInBlocks;
  return {.order = std::move(order),
          .precision = request.training.precision,
          .optimizer = request.training.optimizer,
          .microbatch_size = request.training.microbatch_size,
          .replicas = request.replicas,
          .mode = request.training.mode,
          .microbatch_costs = request.training.microbatch_costs,
          .lengths = request.training.lengths};
}

LayersAndWork read_model(const Request& request, const Cluster& cluster) {
  try {
    return read_layers_and_work(request.model, cluster, model_use(request));
  } catch (const RefusedWish&) {
    throw;
  } catch (const ConfigError& error) {
    if (!error.where().file.empty()) throw;
    throw RefusedWish("operators", std::string("operators: ") + error.what());
  }
}

Cluster as_measured(const Cluster& cluster, const Request& request) {
  return shared_by_replicas(with_measured_overheads(cluster, request.model), request.replicas);
}

const Cluster& Inputs::read(const std::filesystem::path& file, const Replaced& replaced) {
  const std::string key = key_of(file, replaced);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second;
  return clusters_.emplace(key, read_cluster(file, replaced)).first->second;
}

Replaced Inputs::replaced(const CaseConfig& config) {
  Replaced replaced = config.cluster_set;
  if (config.calibration.empty()) return replaced;
  std::vector<std::string> kinds;
  for (const DeviceKind& kind : as_published(config).kinds) kinds.push_back(kind.name);
  for (auto& key : calibrated_keys(config, kinds)) replaced.push_back(std::move(key));
  return replaced;
}

const Cluster& Inputs::as_published(const CaseConfig& config) {
  return read(config.cluster, config.cluster_set);
}

const Cluster& Inputs::as_calibrated(const CaseConfig& config) {
  if (config.calibration.empty()) return as_published(config);
  const Replaced values = replaced(config);
  const std::string key = key_of(config.cluster, values);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second;
  Cluster cluster = calibrated(as_published(config), config);
  // That of the file which is written for those who judge the plan.
  if (!values.empty()) cluster.digest = sha256(cluster_text(config.cluster, values));
  return clusters_.emplace(key, std::move(cluster)).first->second;
}

const Cluster& Inputs::cluster(const CaseConfig& config) {
  std::string key = key_of(config.cluster, replaced(config));
  if (config.model.profile) key += "\nprofile " + config.model.profile->string();
  if (config.replicas.count > 1) key += "\nreplicas " + std::to_string(config.replicas.count);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second;
  return clusters_.emplace(key, as_measured(as_calibrated(config), config)).first->second;
}

std::string Inputs::model_key(const CaseConfig& config) {
  return layers_key(config.model, model_use(config)) + "\n" +
         key_of(config.cluster, replaced(config));
}

void Inputs::know(const CaseConfig& pipeline, Layers layers, Cluster cluster) {
  layers.digest = file_digest(pipeline.model.file);
  cluster.file = pipeline.cluster.string(), cluster.digest = file_digest(pipeline.cluster);
  clusters_.insert_or_assign(key_of(pipeline.cluster, pipeline.cluster_set), std::move(cluster));
  models_.insert_or_assign(model_key(pipeline),
                           LayersAndWork{cut_as_used(std::move(layers), model_use(pipeline)), {}});
}

const LayersAndWork& Inputs::model(const CaseConfig& config) {
  const std::string key = model_key(config);
  const auto found = models_.find(key);
  if (found != models_.end()) return found->second;
  return models_.emplace(key, read_model(config, as_calibrated(config))).first->second;
}

const Layers& Inputs::layers(const CaseConfig& config) { return model(config).layers; }

std::function<const Layers*(const Request&)> Inputs::layers_of(const CaseConfig& config) {
  return [this, &config](const Request& request) -> const Layers* {
    // A measured profile is for one size.
    if (request.model.format != ModelFormat::Pt2 || request.model.profile) return nullptr;
    const std::lock_guard lock(other_sizes_);
    try {
      return &layers(with_request(config, request));
    } catch (const ConfigError&) {
      return nullptr;  // exported for one size
    }
  };
}

const ModelWork* Inputs::work(const CaseConfig& config, const Request& request) {
  const std::lock_guard lock(other_sizes_);
  const std::optional<ModelWork>& work = model(with_request(config, request)).work;
  return work ? &*work : nullptr;
}

const std::string& Inputs::file_digest(const std::filesystem::path& file) {
  const auto found = digests_.find(file);
  if (found != digests_.end()) return found->second;
  return digests_.emplace(file, sha256_file(file)).first->second;
}

std::string Inputs::digest(const CaseConfig& config) {
  std::string text = "planning " + std::string(planning_sources()) + "\n" + resolved_text(config);
  const auto add = [&](const std::string& role, const std::filesystem::path& file) {
    text += role + " " + file_digest(file) + "\n";
  };
  add("model", config.model.file);
  if (config.model.skips) add("skips", *config.model.skips);
  if (config.model.profile) add("profile", *config.model.profile);
  add("cluster", config.cluster);
  for (const DeviceKind& kind : as_published(config).kinds)
    if (!kind.measured_products.rows.empty()) add("products", kind.measured_products.file);
  if (config.plan.file) add("plan", *config.plan.file);
  if (config.plan.schedule) add("plan", *config.plan.schedule);
  for (const std::filesystem::path& trace : config.measurement.traces) add("trace", trace);
  if (config.measure) text += "machine " + machine_line() + "\nruntime " + runtime_sources() + "\n";
  if (!config.handed.digest.empty()) text += "handed " + config.handed.digest + "\n";
  return sha256(text);
}

}  // namespace pfeife
