#include "experiments/inputs.h"

#include "experiments/measure.h"
#include "planner/cost/grouping.h"
#include "planner/cost/roofline.h"
#include "planner/io/cluster_reader.h"
#include "planner/io/digest.h"
#include "planner/io/layer_table.h"
#include "planner/io/pipedream_profile.h"
#include "planner/io/piper_profile.h"
#include "planner/io/profile_file.h"
#include "planner/io/pt2_reader.h"

namespace pfeife {
namespace {

Profile measured_profile(const CaseConfig& config, const Graph& graph, const Training& training,
                         const DeviceKind& kind) {
  Profile profile = read_profile(config.profile->path, graph);
  check_profile(profile, config.profile->path, training, kind.name);
  return profile;
}

Layers layers_of_archive(const CaseConfig& config, const Cluster& cluster) {
  const Graph graph = read_pt2(config.model.file.path, config.microbatch_size);
  const Training training{config.precision, config.optimizer, graph.microbatch_size};
  std::vector<Profile> profiles;
  for (const DeviceKind& kind : cluster.kinds)
    profiles.push_back(config.profile ? measured_profile(config, graph, training, kind)
                                      : roofline_profile(graph, kind, training));
  return layers_from_graph(graph, profiles);
}

Layers read_layers(const CaseConfig& config, const Cluster& cluster) {
  const ModelInput& model = config.model;
  const Training training{config.precision, config.optimizer, config.microbatch_size.value_or(1)};
  const ImportOptions options{.device_kinds = cluster.kinds.size(), .training = training};
  switch (model.format) {
    case ModelFormat::Pt2:
      return layers_of_archive(config, cluster);
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

}  // namespace

const Cluster& Inputs::cluster(const InputFile& file) {
  const auto found = clusters_.find(file.path);
  if (found != clusters_.end()) return found->second;
  return clusters_.emplace(file.path, read_cluster(file.path)).first->second;
}

const Layers& Inputs::layers(const CaseConfig& config) {
  std::string key = config.model.file.path.string() + "\n" + to_string(config.model.format) + "\n" +
                    config.cluster.path.string() + "\n" + to_string(config.precision) + "\n" +
                    to_string(config.optimizer) + "\n" +
                    std::to_string(config.microbatch_size.value_or(0)) + "\n" +
                    std::to_string(config.model.time_unit.count()) + "\n";
  if (config.model.skips) key += config.model.skips->path.string();
  if (config.profile) key += "\n" + config.profile->path.string();
  const auto found = layers_.find(key);
  if (found != layers_.end()) return found->second;
  return layers_.emplace(key, read_layers(config, cluster(config.cluster))).first->second;
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
  std::string text =
      "pfeife results " + std::to_string(kResultsVersion) + "\n" + resolved_text(config);
  const auto add = [&](const std::string& role, const std::filesystem::path& file) {
    text += role + " " + file_digest(file) + "\n";
  };
  add("model", config.model.file.path);
  if (config.model.skips) add("skips", config.model.skips->path);
  if (config.profile) add("profile", config.profile->path);
  add("cluster", config.cluster.path);
  if (config.plan.file) add("plan", config.plan.file->path);
  if (config.measure) text += "machine " + machine_line() + "\n";
  return sha256(text);
}

}  // namespace pfeife
