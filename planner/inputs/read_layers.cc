#include "planner/inputs/read_layers.h"

#include <algorithm>

#include "planner/cost/layers/forward_layers.h"
#include "planner/cost/layers/grouping.h"
#include "planner/cost/layers/linear_order.h"
#include "planner/cost/layers/sequence_of_graph.h"
#include "planner/cost/operators/roofline.h"
#include "planner/cost/operators/saved.h"
#include "planner/cost/operators/uncosted.h"
#include "planner/cost/operators/work.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/inputs/profiled_stage.h"
#include "planner/io/cluster/mesh_file.h"
#include "planner/io/model/imported_layers.h"
#include "planner/io/model/profile_file.h"
#include "planner/io/model/pt2_reader.h"
#include "planner/ir/basics/decimals.h"
#include "planner/ir/model/node_order.h"
#include "planner/ir/model/numbered_module.h"
#include "planner/ir/request/check.h"
#include "planner/mesh/measured_pieces.h"
#include "planner/mesh/mesh_layers.h"
#include "planner/mesh/replicated_layers.h"
#include "planner/mesh/shared_head.h"

namespace pfeife {
namespace {

Profile measured_profile(const ModelFiles& files, const Graph& graph, const Training& training,
                         const DeviceKind& kind) {
  Profile profile = read_profile(*files.profile, graph);
  check_profile(profile, *files.profile, training, kind.name);
  return without_stage(std::move(profile));
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
    throw ConfigError({files.file.string()},
                      "more than 1 % of the model's work may be in operators of unknown cost "
                      "(the table of planner/cost has no row for them; a measured profile has "
                      "their times):\n  " +
                          deciding);
}

bool in_blocks(const std::string& order) {
  return order == kCapturedInBlocks || order == kCapturedInModules;
}

struct OrderedGraph {
  Graph graph;
  std::vector<NodeId> node_order;  ///< empty = as captured
};

OrderedGraph read_ordered(const ModelFiles& files, const ModelUse& use) {
  Graph graph = read_pt2(files.file, use.microbatch_size);
  if (use.order == "captured" || in_blocks(use.order)) return {std::move(graph), {}};
  std::vector<NodeId> order = linear_order(graph, use.order);
  return {reordered(graph, order), std::move(order)};
}

/// Fused attention computes its scores again in backward.
double share_that_counts(const std::string& op, const Kernel& kernel) {
  const bool again =
      op.find("scaled_dot_product_attention") != std::string::npos && kernel.pass != Pass::Forward;
  return again ? 2 / kAttentionBackward : 1;
}

Profile profile_of(const ModelFiles& files, const ModelUse& use, const FactsByPrecision& facts,
                   const DeviceKind& kind) {
  const Training training{use.precision, use.optimizer, facts.graph.microbatch_size};
  return files.profile ? measured_profile(files, facts.graph, training, kind)
                       : roofline_profile(facts, kind, training, files.operators);
}

Layers grouped(const FactsByPrecision& facts, const std::vector<Profile>& profiles,
               const std::string& order, std::vector<NodeId> node_order) {
  Layers layers =
      layers_from_graph(facts, profiles, in_blocks(order) ? Grouping::Blocks : Grouping::Growth);
  layers.order = order;
  layers.node_order = std::move(node_order);
  add_sequence(facts.at(profiles.front().training.precision), profiles.front(), layers);
  return layers;
}

ModelWork work_of(const ModelFiles& files, const GraphFacts& facts, Mode mode) {
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu, files.operators);
  ModelWork work;
  for (const NodeId n : nodes_of(facts.graph))
    for (const Kernel& kernel : kernels.at(n))
      if (mode == Mode::Train || kernel.pass == Pass::Forward)
        work.flops.value += static_cast<double>(kernel.times) * kernel.flops.value *
                            share_that_counts(facts.graph.node(n).op, kernel);
  for (const SavedStorage& storage : saved.storages)
    work.autocast_copy.push_back(facts.graph.value(storage.value).role == ValueRole::Parameter);
  return work;
}

LayersAndWork read_archive(const ModelFiles& files, const ModelUse& use, const Cluster& cluster) {
  auto [graph, node_order] = read_ordered(files, use);
  const FactsByPrecision facts(graph);
  std::vector<Profile> profiles;
  for (const DeviceKind& kind : cluster.kinds)
    profiles.push_back(profile_of(files, use, facts, kind));
  Layers layers = grouped(facts, profiles, use.order, std::move(node_order));
  if (!files.profile) note_uncosted(files, graph, layers);
  return {std::move(layers), work_of(files, facts.at(use.precision), use.mode)};
}

/// The layers of a table with the words that it names: collectives are those among all devices of
/// the cluster, of what the output layer reads. (A table knows no tokens, so that those of numbers
/// for each token take no time.)
Layers read_table(const ModelFiles& files, const ImportOptions& options, const Cluster& cluster) {
  Layers layers = read_layer_table(files.file, files.skips, options);
  if (!layers.words) return layers;
  const LayerId output = layers.words->layers.back();
  const bool input = layers.words->layers.size() > 1;
  layers.words = all_words(layers, input ? std::optional(LayerId{0}) : std::nullopt, output);
  Bytes read{0};
  for (const LayerValue& value : layers.values)
    if (std::ranges::binary_search(value.consumers, output)) read += value.bytes;
  std::vector<DeviceId> devices;
  for (std::size_t d = 0; d < cluster.devices(); ++d) devices.emplace_back(d);
  layers.words->gradient = all_reduce_time(cluster, devices, read);
  layers.words->broadcast = layers.words->gradient / 2;  // a ring gathers, and scatters nothing
  return layers;
}

Layers read_mesh(const std::filesystem::path& file) {
  MeshFile mesh = read_mesh_file(file);
  Layers layers = pipeline_layers(mesh.run, mesh.network);
  layers.digest = std::move(mesh.digest);
  return layers;
}

ProfiledRuntime profiled_runtime(const ModelFiles& files) {
  const bool profiled = files.profile && files.format == ModelFormat::Pt2;
  return profiled ? read_profiled_runtime(*files.profile) : ProfiledRuntime{};
}

}  // namespace

Layers pipeline_layers(const MeshRun& run, const Network& network) {
  check_run(run);
  Layers layers = mesh_layers(run, network).layers;
  layers.name = run.architecture.name;
  layers.microbatch_size = run.microbatch_size * run.mesh.size(Axis::Data);
  layers.undivided_because = undivided_because(run);
  if (layers.undivided_because.empty()) layers.words = word_share(run, layers, network);
  layers.notes = network.notes;
  layers.notes.insert(layers.notes.end(), run.architecture.left_out.begin(),
                      run.architecture.left_out.end());
  layers.notes.push_back("one pipeline of " + to_string(run.mesh) +
                         ": collectives in the layers' times, reductions of gradients " +
                         (layers.reductions.empty() ? "in the optimizer's" : "beside backwards"));
  if (!network.device.measured_products.rows.empty())
    layers.notes.push_back(coverage_text(mesh_products(run, network)));
  if (!network.measured_layers.empty())
    layers.notes.push_back(coverage_text(run, network.measured_layers));
  if (run.activation_factor != 1)
    layers.notes.push_back(stream_all("activations take ", fixed(run.activation_factor, 3),
                                      " times the formula's bytes: by a measured peak"));
  return layers;
}

Layers cut_as_used(Layers layers, const ModelUse& use) {
  if (use.order != kCapturedInModules) return layers;
  Partition borders;
  bool numbered = false;
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    const std::string here = numbered_module(layers.layers[l].module_path);
    numbered = numbered || !here.empty();
    if (here != numbered_module(layers.layers[l + 1].module_path) &&
        layers.layers[l].no_cut_after.empty())
      borders.cuts.push_back(static_cast<std::int32_t>(l));
  }
  if (!numbered || borders.cuts.empty())
    throw RefusedWish("plan.for", "plan.for: " + layers.name +
                                      " has no numbered modules (layers.0, h.11), between which "
                                      "such frameworks cut; leave it out, or use torch");
  layers.order = use.order;
  return cut_only_at(borders, std::move(layers));
}

GraphProfile graph_profile(const ModelFiles& files, const ModelUse& use, const DeviceKind& kind) {
  auto [graph, node_order] = read_ordered(files, use);
  Profile profile = profile_of(files, use, graph, kind);
  return {std::move(graph), std::move(node_order), std::move(profile)};
}

Layers layers_of(const GraphProfile& of, const std::string& order) {
  return grouped(of.graph, {of.profile}, order, of.node_order);
}

std::vector<ProductUse> archive_products(const ModelFiles& files, const ModelUse& use,
                                         const DeviceKind& kind) {
  if (files.format != ModelFormat::Pt2 || files.profile)
    throw ConfigError({files.file.string()},
                      "the model's times are given, so that no product needs to be measured; name "
                      "an archive (.pt2) without a profile, or an architecture");
  const auto [graph, node_order] = read_ordered(files, use);
  return product_uses(graph, kind, {use.precision, use.optimizer, graph.microbatch_size},
                      files.operators);
}

Nanoseconds message_overhead(const ModelFiles& files) {
  return profiled_runtime(files).message_overhead.value_or(Nanoseconds{0});
}

Cluster with_measured_overheads(Cluster cluster, const ModelFiles& files) {
  const ProfiledRuntime found = profiled_runtime(files);
  if (found.stage_overheads)
    for (DeviceKind& kind : cluster.kinds)
      kind.stage_overhead += each_action(*found.stage_overheads);
  for (Path& path : cluster.paths)
    if (!path.links.empty()) path.latency += found.message_overhead.value_or(Nanoseconds{0});
  return cluster;
}

static LayersAndWork read_pipeline(const ModelFiles& files, const ModelUse& use,
                                   const Cluster& cluster) {
  const ImportOptions options{
      .device_kinds = cluster.kinds.size(),
      .training = {use.precision, use.optimizer, use.microbatch_size.value_or(1)}};
  switch (files.format) {
    case ModelFormat::Pt2:
      return read_archive(files, use, cluster);
    case ModelFormat::Table:
      return {read_table(files, options, cluster), {}};
    case ModelFormat::PipeDream:
      return {read_pipedream_profile(files.file, options), {}};
    case ModelFormat::Piper:
      return {read_piper_profile(files.file, files.time_unit, options), {}};
    case ModelFormat::Mesh:
      return {read_mesh(files.file), {}};
  }
  return {};
}

static std::vector<MicrobatchScale> scales_of(const Layers& layers, const ModelUse& use) {
  if (use.lengths.empty())
    return use.microbatch_costs.empty() ? layers.microbatches : use.microbatch_costs;
  const auto refuse = [](const std::string& why) {
    throw RefusedWish("training.lengths",
                      "training.lengths: " + why +
                          "; give training.microbatch_costs, or take an archive "
                          "with causal attention");
  };
  if (!layers.sequence)
    refuse(layers.whole_because.empty() ? "the attention of this model is not seen"
                                        : layers.whole_because);
  const std::int64_t tokens = layers.sequence->tokens;
  if (tokens == 0) refuse("the model does not say how many tokens a sequence has");
  for (std::size_t m = 0; m < use.lengths.size(); ++m)
    for (const std::int64_t length : use.lengths[m])
      if (length > tokens)
        throw RefusedWish("training.lengths",
                          "training.lengths: microbatch " + std::to_string(m) +
                              " has a document of " + std::to_string(length) +
                              " tokens, and the model's sequences have " + std::to_string(tokens) +
                              "; export the model for longer ones, or cut the document");
  return scales_of_documents(use.lengths, tokens, layers.microbatch_size);
}

Layers as_used(Layers layers, const ModelUse& use, const Cluster& cluster) {
  layers.microbatches = without_equal_ones(scales_of(layers, use));
  if (!layers.microbatches.empty() && !layers.steps.empty())
    throw RefusedWish("training.microbatch_costs",
                      "training.microbatch_costs: this mesh has actions side by side on two "
                      "streams, priced for microbatches that are alike; choose the mesh with "
                      "parallel.overlap: sums, or leave microbatch_costs out");
  layers = replicated(std::move(layers), use.replicas, cluster);
  return use.mode == Mode::Forward ? forward_layers(std::move(layers)) : layers;
}

Layers read_layers(const ModelFiles& files, const Cluster& cluster, const ModelUse& use) {
  return read_layers_and_work(files, cluster, use).layers;
}

LayersAndWork read_layers_and_work(const ModelFiles& files, const Cluster& cluster,
                                   const ModelUse& use) {
  LayersAndWork read = read_pipeline(files, use, cluster);
  read.layers = as_used(cut_as_used(std::move(read.layers), use), use, cluster);
  return read;
}

}  // namespace pfeife
