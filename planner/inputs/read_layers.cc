#include "planner/inputs/read_layers.h"

#include "planner/cost/grouping.h"
#include "planner/cost/linear_order.h"
#include "planner/cost/roofline.h"
#include "planner/cost/uncosted.h"
#include "planner/io/model/layer_table.h"
#include "planner/io/model/pipedream_profile.h"
#include "planner/io/model/piper_profile.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/node_order.h"

namespace pfeife {
namespace {

Profile measured_profile(const ModelFiles& files, const Graph& graph, const Training& training,
                         const DeviceKind& kind) {
  Profile profile = read_profile(*files.profile, graph);
  check_profile(profile, *files.profile, training, kind.name);
  return profile;
}

/// A plan is worth nothing if the costs of what decides it are not known.
void note_uncosted(const ModelFiles& files, const Graph& graph, Layers& layers) {
  std::string deciding;
  for (const UncostedOperator& uncosted : uncosted_operators(graph, files.operators)) {
    if (uncosted.decides())
      deciding += (deciding.empty() ? "" : "\n  ") + to_string(uncosted);
    else if (uncosted.matters())
      layers.uncosted.push_back(to_string(uncosted));
  }
  if (!deciding.empty())
    throw ConfigError({files.model.string()},
                      "more than 1 % of the model's work may be in operators of unknown cost "
                      "(the table of planner/cost has no row for them; a measured profile has "
                      "their times):\n  " +
                          deciding);
}

Layers read_archive(const ModelFiles& files, const Cluster& cluster) {
  Graph graph = read_pt2(files.model, files.microbatch_size);
  std::vector<NodeId> node_order;
  const bool blocks = files.order == kCapturedInBlocks;
  if (files.order != "captured" && !blocks) {
    node_order = linear_order(graph, files.order);
    graph = reordered(graph, node_order);
  }
  const Training training{files.precision, files.optimizer, graph.microbatch_size};
  const FactsByPrecision facts(graph);
  std::vector<Profile> profiles;
  for (const DeviceKind& kind : cluster.kinds)
    profiles.push_back(files.profile ? measured_profile(files, graph, training, kind)
                                     : roofline_profile(facts, kind, training, files.operators));
  Layers layers = layers_from_graph(facts, profiles, blocks ? Grouping::Blocks : Grouping::Growth);
  if (!files.profile) note_uncosted(files, graph, layers);
  layers.order = files.order;
  layers.node_order = std::move(node_order);
  return layers;
}

}  // namespace

Layers read_layers(const ModelFiles& files, const Cluster& cluster) {
  const ImportOptions options{
      .device_kinds = cluster.kinds.size(),
      .training = {files.precision, files.optimizer, files.microbatch_size.value_or(1)}};
  switch (files.format) {
    case ModelFormat::Pt2:
      return read_archive(files, cluster);
    case ModelFormat::Table:
      return read_layer_table(files.model, files.skips, options);
    case ModelFormat::PipeDream:
      return read_pipedream_profile(files.model, options);
    case ModelFormat::Piper:
      return read_piper_profile(files.model, files.time_unit, options);
  }
  return {};
}

}  // namespace pfeife
