#include "experiments/inputs.h"

#include "experiments/measure.h"
#include "experiments/source_digest.h"
#include "planner/cost/grouping.h"
#include "planner/cost/linear_order.h"
#include "planner/cost/roofline.h"
#include "planner/io/cluster/cluster_reader.h"
#include "planner/io/files/digest.h"
#include "planner/io/model/layer_table.h"
#include "planner/io/model/pipedream_profile.h"
#include "planner/io/model/piper_profile.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/node_order.h"

namespace pfeife {
namespace {

Profile measured_profile(const CaseConfig& config, const Graph& graph, const Training& training,
                         const DeviceKind& kind) {
  Profile profile = read_profile(config.profile->path, graph);
  check_profile(profile, config.profile->path, training, kind.name);
  return profile;
}

/// Where the order is to be found, one is as good as another to begin with.
std::string order_of(const CaseConfig& config) {
  return config.plan.order == "search" ? "captured" : config.plan.order;
}

/// A cluster's file and what is replaced in it.
std::string key_of(const InputFile& file) {
  std::string key = file.path.string();
  for (const auto& [path, value] : file.replaced) key += "\n" + path + ": " + to_text(value);
  return key;
}

}  // namespace

const Cluster& Inputs::cluster(const InputFile& file) {
  const std::string key = key_of(file);
  const auto found = clusters_.find(key);
  if (found != clusters_.end()) return found->second;
  return clusters_.emplace(key, read_cluster(file.path, file.replaced)).first->second;
}

Layers Inputs::read_archive(const CaseConfig& config) {
  Graph graph = read_pt2(config.model.file.path, config.microbatch_size);
  std::vector<NodeId> node_order;
  const std::string order = order_of(config);
  if (order != "captured") {
    node_order = linear_order(graph, order);
    graph = reordered(graph, node_order);
  }
  const Training training{config.precision, config.optimizer, graph.microbatch_size};
  const FactsByPrecision facts(graph);
  std::vector<Profile> profiles;
  for (const DeviceKind& kind : cluster(config.cluster).kinds)
    profiles.push_back(config.profile ? measured_profile(config, graph, training, kind)
                                      : roofline_profile(facts, kind, training));
  Layers layers = layers_from_graph(facts, profiles);
  layers.order = order;
  layers.node_order = std::move(node_order);
  return layers;
}

Layers Inputs::read_model(const CaseConfig& config) {
  const ModelInput& model = config.model;
  const Training training{config.precision, config.optimizer, config.microbatch_size.value_or(1)};
  const ImportOptions options{.device_kinds = cluster(config.cluster).kinds.size(),
                              .training = training};
  switch (model.format) {
    case ModelFormat::Pt2:
      return read_archive(config);
    case ModelFormat::Table:
      return read_layer_table(
          model.file.path, model.skips ? std::optional(model.skips->path) : std::nullopt, options);
    case ModelFormat::PipeDream:
      return read_pipedream_profile(model.file.path, options);
    case ModelFormat::Piper:
      return read_piper_profile(model.file.path, model.time_unit, options);
  }
  return {};
}

const Layers& Inputs::layers(const CaseConfig& config) {
  std::string key = config.model.file.path.string() + "\n" + to_string(config.model.format) + "\n" +
                    key_of(config.cluster) + "\n" + to_string(config.precision) + "\n" +
                    to_string(config.optimizer) + "\n" +
                    std::to_string(config.microbatch_size.value_or(0)) + "\n" +
                    std::to_string(config.model.time_unit.count()) + "\n" + order_of(config) + "\n";
  if (config.model.skips) key += config.model.skips->path.string();
  if (config.profile) key += "\n" + config.profile->path.string();
  const auto found = models_.find(key);
  if (found != models_.end()) return found->second;
  return models_.emplace(key, read_model(config)).first->second;
}

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
  if (config.measure) text += "machine " + machine_line() + "\nruntime " + runtime_sources() + "\n";
  return sha256(text);
}

}  // namespace pfeife
