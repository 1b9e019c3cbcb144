#include "planner/mesh/shared_head.h"

#include "planner/cost/stages/word_shares.h"

namespace pfeife {

std::string undivided_because(const MeshRun& run) {
  const Mesh& mesh = run.mesh;
  if (mesh.size(Axis::Pipeline) < 2) return "the pipeline has one rank; choose pp 2 or more";
  if (mesh.size(Axis::Tensor) > 1 || mesh.size(Axis::Context) > 1 || mesh.experts > 1)
    return "a rank of tp, cp or ep has a part of it already; choose pp and dp alone, not " +
           to_string(mesh);
  if (run.stages_per_rank > 1)
    return "the orders for it have one stage a rank, not " + std::to_string(run.stages_per_rank);
  if (run.zero > 0)
    return "its state is not divided over dp; choose zero 0, not " + std::to_string(run.zero);
  return "";
}

WordShare word_share(const MeshRun& run, const Layers& whole, const Network& network) {
  const std::int64_t ranks = run.mesh.size(Axis::Pipeline);
  MeshRun part = run;
  part.mesh.size(Axis::Pipeline) = 1;
  part.architecture.vocabulary = (run.architecture.vocabulary + ranks - 1) / ranks;
  const Layers layers = mesh_layers(part, network).layers;
  const LayerId first{0}, last{layers.size() - 1};
  WordShare words = all_words(layers, first, last);
  words.ranks = static_cast<std::size_t>(ranks);
  words.layers = {first, LayerId{whole.size() - 1}};
  if (!layers.reductions.empty())
    for (const LayerId layer : {first, last})
      words.output.optimizer += layers.reductions[layer.index()].time;

  const GroupShape group = group_shape(run.mesh, {Axis::Pipeline}, used_domains(run.mesh, network));
  const std::int64_t tokens = run.microbatch_size * run.architecture.sequence;
  const auto time = [&](CollectiveKind kind, std::int64_t bytes) {
    return collective_time(kind, Bytes{bytes}, group, network);
  };
  const std::int64_t values = tokens * run.architecture.hidden * element_size(run.type).value;
  // A ring passes a broadcast on in pieces, as many bytes over each link as of a gather.
  words.broadcast = time(CollectiveKind::AllGather, values);
  words.scalars = 3 * time(CollectiveKind::AllReduce, 4 * tokens);  // fp32
  words.gradient = time(CollectiveKind::AllReduce, values);
  return words;
}

}  // namespace pfeife
