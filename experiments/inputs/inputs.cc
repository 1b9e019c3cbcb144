#include "experiments/inputs/inputs.h"

#include "experiments/inputs/source_digest.h"
#include "experiments/machine/machine.h"
#include "planner/cost/layers/linear_order.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/digest.h"
#include "planner/mesh/replicated_layers.h"

namespace pfeife {
namespace {

std::string order_of(const CaseConfig& config) {
  if (config.plan.at_blocks) return kCapturedInBlocks;
  return config.plan.order == "search" ? "captured" : config.plan.order;
}

/// A cluster's file and what is replaced in it.
std::string key_of(const InputFile& file) {
  std::string key = file.path.string();
  for (const auto& [path, value] : file.replaced) key += "\n" + path + ": " + to_text(value);
  return key;
}

/// What the layers of a case are made from.
std::string layers_key(const CaseConfig& config) {
  std::string key = config.model.file.path.string() + "\n" + to_string(config.model.format) + "\n" +
                    key_of(config.cluster) + "\n" + to_string(config.precision) + "\n" +
                    to_string(config.optimizer) + "\n" +
                    std::to_string(config.microbatch_size.value_or(0)) + "\n" +
                    std::to_string(config.model.time_unit.count()) + "\n" + order_of(config) + "\n";
  if (config.model.skips) key += config.model.skips->path.string();
  if (config.profile) key += "\n" + config.profile->path.string();
  for (const OperatorCost& cost : config.operators)
    key += "\n" + cost.op + "\n" + cost.flops + "\n" + cost.bytes;
  const Replicas& replicas = config.replicas;
  for (const std::int64_t one :
       {replicas.count, std::int64_t{replicas.zero}, std::int64_t{replicas.overlap_reductions}})
    key += "\n" + std::to_string(one);
  return key;
}

}  // namespace

ModelFiles model_files(const CaseConfig& config) {
  const ModelInput& model = config.model;
  const auto path = [](const std::optional<InputFile>& file) {
    return file ? std::optional(file->path) : std::nullopt;
  };
  return {.file = model.file.path,
          .format = model.format,
          .time_unit = model.time_unit,
          .skips = path(model.skips),
          .profile = path(config.profile),
          .operators = config.operators};
}

ModelUse model_use(const CaseConfig& config) {
  return {.order = order_of(config),
          .precision = config.precision,
          .optimizer = config.optimizer,
          .microbatch_size = config.microbatch_size,
          .replicas = config.replicas};
}

const Cluster& Inputs::cluster(const InputFile& file) {
  const std::string key = key_of(file);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second;
  return clusters_.emplace(key, read_cluster(file.path, file.replaced)).first->second;
}

const Cluster& Inputs::cluster(const CaseConfig& config) {
  std::string key = key_of(config.cluster);
  if (config.profile) key += "\nprofile " + config.profile->path.string();
  if (config.replicas.count > 1) key += "\nreplicas " + std::to_string(config.replicas.count);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second;
  const Cluster& read = cluster(config.cluster);
  return clusters_
      .emplace(key, shared_by_replicas(with_measured_overheads(read, model_files(config)),
                                       config.replicas))
      .first->second;
}

const LayersAndWork& Inputs::model(const CaseConfig& config) {
  const std::string key = layers_key(config);
  const auto found = models_.find(key);
  if (found != models_.end()) return found->second;
  try {
    return models_
        .emplace(key, read_layers_and_work(model_files(config), cluster(config.cluster),
                                           model_use(config)))
        .first->second;
  } catch (const ConfigError& error) {
    if (!error.where().file.empty()) throw;
    const std::string what = error.what();
    if (what.starts_with("parallel")) throw ConfigError(config.replicas_where, what);
    throw ConfigError(config.where, "operators: " + what);
  }
}

const Layers& Inputs::layers(const CaseConfig& config) { return model(config).layers; }

const Layers* Inputs::other_layers(const CaseConfig& config) {
  // A measured profile is for one size.
  if (config.model.format != ModelFormat::Pt2 || config.profile) return nullptr;
  const std::lock_guard lock(other_sizes_);
  try {
    return &layers(config);
  } catch (const ConfigError&) {
    return nullptr;  // exported for one size
  }
}

const ModelWork* Inputs::work(const CaseConfig& config) {
  const std::lock_guard lock(other_sizes_);
  const std::optional<ModelWork>& work = model(config).work;
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
  add("model", config.model.file.path);
  if (config.model.skips) add("skips", config.model.skips->path);
  if (config.profile) add("profile", config.profile->path);
  add("cluster", config.cluster.path);
  if (config.plan.file) add("plan", config.plan.file->path);
  for (const InputFile& trace : config.measurement.traces) add("trace", trace.path);
  if (config.measure) text += "machine " + machine_line() + "\nruntime " + runtime_sources() + "\n";
  return sha256(text);
}

}  // namespace pfeife
