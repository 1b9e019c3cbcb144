#include "planner/mesh/shared_head.h"

#include <algorithm>

#include "planner/ir/basics/error.h"

namespace pfeife {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw ConfigError({}, "ranks cannot share the output layer: " + why);
}

LayerId last_layer(const Layers& layers) { return LayerId{layers.size() - 1}; }

/// Embedding and output layer.
bool is_vocabulary_layer(const Layers& layers, LayerId layer) {
  return layer == LayerId{0} || layer == last_layer(layers);
}

/// What the layer keeps from its forward to its backward.
Bytes kept(const Layers& layers, LayerId layer) {
  const Layer& of_layer = layers.layers[layer.index()];
  Bytes bytes = of_layer.saved + of_layer.weight_saved;
  for (const LayerStorage& storage : layers.storages)
    if (std::ranges::binary_search(storage.savers, layer) ||
        std::ranges::binary_search(storage.weight_savers, layer))
      bytes += storage.bytes;
  return bytes;
}

}  // namespace

void check_shared_head(const MeshRun& run) {
  const Mesh& mesh = run.mesh;
  if (mesh.size(Axis::Pipeline) < 2) refuse("the pipeline has one rank; choose pp 2 or more");
  if (mesh.size(Axis::Tensor) > 1 || mesh.size(Axis::Context) > 1 || mesh.experts > 1)
    refuse("a rank of tp, cp or ep has a part of it already; choose pp and dp alone, not " +
           to_string(mesh));
  if (run.stages_per_rank > 1)
    refuse("the orders for it have one stage a rank, not " + std::to_string(run.stages_per_rank));
  if (run.zero > 0)
    refuse("its state is not divided over dp; choose zero 0, not " + std::to_string(run.zero));
}

MeshLayers without_vocabulary_layers(MeshLayers pieces) {
  Layers& layers = pieces.layers;
  const auto emptied = [&](LayerId layer) { return is_vocabulary_layer(layers, layer); };
  for (const LayerId id : {LayerId{0}, last_layer(layers)}) {
    Layer& layer = layers.layers[id.index()];
    layer.times.assign(layer.times.size(), {});
    layer.saved = layer.weight_saved = layer.model_input = Bytes{0};
    layer.temporary = {};
    if (!layers.reductions.empty()) layers.reductions[id.index()] = {};
    if (!layers.collectives.empty()) layers.collectives[id.index()] = {};
  }
  for (std::size_t p = 0; p < layers.parameters.size(); ++p) {
    LayerParameter& parameter = layers.parameters[p];
    if (!std::ranges::all_of(parameter.users, emptied)) continue;
    if (p < pieces.reduction.size()) pieces.reduction[p] = Nanoseconds{0};
    parameter.bytes = parameter.gradient = parameter.state = parameter.exchanged = Bytes{0};
    parameter.optimizer.assign(parameter.optimizer.size(), Nanoseconds{0});
  }
  for (LayerStorage& storage : layers.storages) {
    std::erase_if(storage.savers, emptied);
    std::erase_if(storage.weight_savers, emptied);
  }
  std::erase_if(layers.storages, [](const LayerStorage& storage) {
    return storage.savers.empty() && storage.weight_savers.empty();
  });
  return pieces;
}

void add_vocabulary_shares(StageCosts& costs, const MeshRun& run, const Network& network,
                           std::size_t barriers, bool stops) {
  const std::int64_t ranks = run.mesh.size(Axis::Pipeline);
  MeshRun part = run;
  part.mesh.size(Axis::Pipeline) = 1;
  part.architecture.vocabulary = (run.architecture.vocabulary + ranks - 1) / ranks;
  const Layers layers = mesh_layers(part, network).layers;
  const LayerTimes& times = layers.layers.back().times.front();
  const LayerTimes& lookup = layers.layers.front().times.front();
  const Nanoseconds embedding = lookup.forward + lookup.backward_input + lookup.backward_weight;

  const GroupShape group = group_shape(run.mesh, {Axis::Pipeline}, used_domains(run.mesh, network));
  const std::int64_t tokens = run.microbatch_size * run.architecture.sequence;
  const auto time = [&](CollectiveKind kind, std::int64_t bytes) {
    return collective_time(kind, Bytes{bytes}, group, network);
  };
  const std::int64_t values = tokens * run.architecture.hidden * element_size(run.type).value;
  // Maximum, sum, and the label's score of each token, in fp32.
  const Nanoseconds scalars = 3 * time(CollectiveKind::AllReduce, 4 * tokens);
  const Nanoseconds gradient = time(CollectiveKind::AllReduce, values);
  // A ring passes a broadcast on in pieces, as many bytes over each link as of a gather.
  SharedHead head_costs{.barriers = barriers, .broadcast = time(CollectiveKind::AllGather, values)};
  head_costs.after_share = scalars + (barriers == 1 ? gradient : Nanoseconds{0});
  if (barriers == 2 && !stops) head_costs.after_rest = gradient;
  costs.head = head_costs;

  for (StageCost& stage : costs.stages) {
    stage.head_share = times.forward + (barriers == 1 ? times.backward_input : Nanoseconds{0});
    stage.head_rest = times.backward_weight +
                      (barriers == 2 ? times.backward_input : Nanoseconds{0}) +
                      (stops ? gradient : Nanoseconds{0}) + embedding;
    stage.head_saved = kept(layers, last_layer(layers));
    stage.head_temporary = std::max(layers.layers.back().temporary.largest(),
                                    layers.layers.front().temporary.largest());
    for (const LayerParameter& parameter : layers.parameters) {
      const auto shared = [&](LayerId user) { return is_vocabulary_layer(layers, user); };
      if (std::ranges::none_of(parameter.users, shared)) continue;
      stage.parameters += parameter.bytes;
      stage.gradients += parameter.gradient;
      stage.optimizer_state += parameter.state;
      stage.optimizer += parameter.optimizer.front();
    }
  }
}

}  // namespace pfeife
