#include "planner/mesh/mesh_layers.h"

#include <algorithm>
#include <map>

#include "planner/cost/grouping.h"
#include "planner/cost/roofline.h"
#include "planner/ir/arguments.h"
#include "planner/ir/error.h"
#include "planner/mesh/rank_graph.h"

namespace pfeife {
namespace {

/// Bytes that a step of Adam in mixed precision moves for an element: gradient to fp32 and unscaled
/// (14), its norm and clipping (12), moments and master (28), parameter in 16 bits (6).
constexpr std::int64_t kOptimizerTraffic = 60;
constexpr std::int64_t kGradient = 4, kState = 12;  // bytes an element

bool of_experts(const std::string& parameter) {
  return parameter.find(".experts.") != std::string::npos;
}

GroupShape shape_of(const std::string& axis, const Mesh& mesh, const Network& network) {
  if (axis == "tp") return group_shape(mesh, {Axis::Tensor}, network.devices_per_host);
  if (axis == "cp") return group_shape(mesh, {Axis::Context}, network.devices_per_host);
  Mesh part = mesh;  // neighbours along dp
  part.size(Axis::Data) = mesh.experts;
  return group_shape(part, {Axis::Data}, network.devices_per_host);
}

struct BothWays {
  Nanoseconds forward{0}, backward{0};
};
BothWays collective_times(const Graph& graph, const Node& node, const GroupShape& group,
                          const Network& network) {
  using enum CollectiveKind;
  const Bytes in = graph.value(first_tensor(node)).type.bytes(),
              out = graph.value(node.outputs.front()).type.bytes();
  const auto time = [&](CollectiveKind kind, Bytes bytes) {
    return collective_time(kind, bytes, group, network);
  };
  if (node.op == "pfeife::all_reduce") return {time(AllReduce, out), Nanoseconds{0}};
  if (node.op == "pfeife::all_reduce_gradient") return {Nanoseconds{0}, time(AllReduce, out)};
  if (node.op == "pfeife::all_gather") return {time(AllGather, out), time(ReduceScatter, out)};
  if (node.op == "pfeife::reduce_scatter") return {time(ReduceScatter, in), time(AllGather, in)};
  PFEIFE_CHECK(node.op == "pfeife::all_to_all", node.op);
  return {time(AllToAll, in), time(AllToAll, in)};
}

void add_collectives(Profile& profile, const Graph& graph, const Mesh& mesh,
                     const Network& network) {
  std::map<std::string, GroupShape> shapes;
  for (const NodeId n : nodes_of(graph)) {
    const std::string axis = collective_axis(graph.node(n));
    if (axis.empty()) continue;
    if (!shapes.contains(axis)) shapes[axis] = shape_of(axis, mesh, network);
    const BothWays times = collective_times(graph, graph.node(n), shapes[axis], network);
    profile.nodes[n.index()].forward += times.forward;
    profile.nodes[n.index()].backward_input += times.backward;
  }
}

/// What was gathered along tp is not kept: its savers keep the part it was gathered from.
void keep_parts(Profile& profile, const Graph& graph) {
  const auto entry = [&](ValueId value) -> SavedStorage& {
    const auto found = std::ranges::find(profile.storages, value, &SavedStorage::value);
    if (found != profile.storages.end()) return *found;
    profile.storages.push_back({value, graph.value(value).type.bytes(), {}, {}});
    return profile.storages.back();
  };
  const auto merge = [](std::vector<NodeId>& into, const std::vector<NodeId>& more) {
    into.insert(into.end(), more.begin(), more.end());
    std::ranges::sort(into);
    into.erase(std::unique(into.begin(), into.end()), into.end());
  };
  const std::vector<SavedStorage> before = profile.storages;
  for (const SavedStorage& storage : before) {
    const auto& producer = graph.value(storage.value).producer;
    if (!producer) continue;
    const Node& node = graph.node(*producer);
    if (node.op != "pfeife::all_gather" || collective_axis(node) != "tp") continue;
    SavedStorage& part = entry(first_tensor(node));
    merge(part.savers, storage.savers);
    merge(part.weight_savers, storage.weight_savers);
    std::erase_if(profile.storages,
                  [&](const SavedStorage& one) { return one.value == storage.value; });
  }
}

void set_parameters(Layers& layers, const MeshRun& run, const Network& network) {
  const std::int64_t element = element_size(run.type).value;
  const double rate = network.device.memory_efficiency * network.device.memory_bandwidth.value;
  for (LayerParameter& parameter : layers.parameters) {
    const std::int64_t count = parameter.bytes.value / element;
    const std::int64_t replicas = gradient_group(run, parameter, network).ranks;
    const auto divided = [&](std::int64_t bytes, bool yes) {
      return Bytes{yes ? (count * bytes + replicas - 1) / replicas : count * bytes};
    };
    parameter.gradient = divided(kGradient, run.zero >= 2);
    parameter.state = divided(kState, run.zero >= 1);
    const Bytes moved = divided(kOptimizerTraffic, run.zero >= 1);
    parameter.optimizer = {nanoseconds_from_seconds(static_cast<double>(moved.value) / rate)};
  }
}

void add_blocks(MeshLayers& made, const std::vector<Piece>& pieces, Recomputation recomputation) {
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const LayerId here{p};
    if (pieces[p].kind == PieceKind::BeforeAttention) {
      made.first.push_back(here.value);
      if (recomputation == Recomputation::Full) made.blocks.push_back({here, LayerId{p + 2}});
    }
    if (pieces[p].kind == PieceKind::Attention && recomputation == Recomputation::Attention)
      made.blocks.push_back({here, here});
  }
}

}  // namespace

GroupShape gradient_group(const MeshRun& run, const LayerParameter& parameter,
                          const Network& network) {
  if (!of_experts(parameter.name) || run.mesh.experts == 1)
    return group_shape(run.mesh, {Axis::Context, Axis::Data}, network.devices_per_host);
  const GroupShape all =
      group_shape(run.mesh, {Axis::Context, Axis::Data}, network.devices_per_host);
  // Every ep-th of them.
  const std::int64_t ranks = all.ranks / run.mesh.experts;
  return {ranks, std::max<std::int64_t>(1, all.per_host / run.mesh.experts)};
}

MeshLayers mesh_layers(const MeshRun& run, const Network& network) {
  const RankGraph rank = rank_graph(run.architecture, run.mesh,
                                    {.microbatch_size = run.microbatch_size,
                                     .sequence_parallel = run.sequence_parallel,
                                     .type = run.type});
  const FactsByPrecision facts(rank.graph);
  Profile profile = roofline_profile(facts, network.device,
                                     {.precision = Precision::Fp32,
                                      .optimizer = Optimizer::Adam,
                                      .microbatch_size = run.microbatch_size});
  add_collectives(profile, rank.graph, run.mesh, network);
  if (run.sequence_parallel) keep_parts(profile, rank.graph);
  std::vector<bool> ends(rank.graph.nodes.size(), false);
  for (const Piece& piece : rank.pieces) ends[piece.last.index()] = true;
  ends.back() = false;  // the last layer ends by itself
  MeshLayers made;
  made.layers = layers_from_graph(facts, {profile}, ends);
  PFEIFE_CHECK(made.layers.size() == rank.pieces.size(), made.layers.size(), " layers for ",
               rank.pieces.size(), " pieces");
  set_parameters(made.layers, run, network);
  add_blocks(made, rank.pieces, run.recomputation);
  return made;
}

}  // namespace pfeife
