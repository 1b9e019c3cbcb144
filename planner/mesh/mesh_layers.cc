#include "planner/mesh/mesh_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "planner/cost/layers/grouping.h"
#include "planner/cost/operators/aliasing.h"
#include "planner/cost/operators/roofline.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/model/arguments.h"
#include "planner/mesh/activation_memory.h"
#include "planner/mesh/cast_products.h"
#include "planner/mesh/measured_pieces.h"
#include "planner/mesh/rank_graph.h"
#include "planner/mesh/recomputed_modules.h"
#include "planner/mesh/repeat_layer.h"
#include "planner/mesh/sharded_parameters.h"

namespace pfeife {
namespace {

constexpr std::int64_t kGradient = 4;  // bytes an element
/// Bytes moved for each element of a rank's gradients once a step besides the optimizer's: zeroed
/// 4, tested for NaN 4, scaled 8 (Megatron-LM 0.14, param_and_grad_buffer.py).
constexpr double kMegatronTraffic = 16;

GroupShape shape_of(const std::string& axis, const Mesh& mesh, const Network& network) {
  const std::vector<std::int64_t> domains = used_domains(mesh, network);
  if (axis == "tp") return group_shape(mesh, {Axis::Tensor}, domains);
  if (axis == "cp") return group_shape(mesh, {Axis::Context}, domains);
  Mesh part = mesh;  // neighbours along dp
  part.size(Axis::Data) = mesh.experts;
  return group_shape(part, {Axis::Data}, domains);
}

LayerCollectives collective_times(const Graph& graph, const Node& node, const GroupShape& group,
                                  const MeshRun& run, const Network& network) {
  using enum CollectiveKind;
  const Bytes in = graph.value(first_tensor(node)).type.bytes(),
              out = graph.value(node.outputs.front()).type.bytes();
  const Bytes most = std::max(in, out);  // of tokens: received by, or sent from, the fullest rank
  const auto time = [&](CollectiveKind kind, Bytes bytes) {
    return collective_time(kind, bytes, group, network);
  };
  if (node.op == "pfeife::all_reduce") return {time(AllReduce, out), Nanoseconds{0}};
  if (node.op == "pfeife::all_reduce_gradient") return {Nanoseconds{0}, time(AllReduce, out)};
  if (node.op == "pfeife::all_gather") return {time(AllGather, out), time(ReduceScatter, out)};
  if (node.op == "pfeife::reduce_scatter") return {time(ReduceScatter, in), time(AllGather, in)};
  PFEIFE_CHECK(node.op == "pfeife::all_to_all", node.op);
  const Nanoseconds exchange =
      run.once_a_host && collective_axis(node) == "ep"
          ? expert_exchange_time(most, {run.architecture.experts, run.architecture.top_k}, group,
                                 network)
          : time(AllToAll, collective_axis(node) == "ep" ? most : in);
  return {exchange, exchange};
}

/// [value] How long the weight gradients take of the products that read it.
std::vector<Nanoseconds> weight_gradients(const Profile& profile, const Graph& graph) {
  std::vector<Nanoseconds> of(graph.values.size(), Nanoseconds{0});
  for (const NodeId n : nodes_of(graph))
    if (graph.node(n).op == "aten::linear")
      of[first_tensor(graph.node(n)).index()] += profile.nodes[n.index()].backward_weight;
  return of;
}

/// [node]
std::vector<LayerCollectives> add_collectives(Profile& profile, const Graph& graph,
                                              const MeshRun& run, const Network& network) {
  std::vector<LayerCollectives> all(graph.nodes.size());
  std::map<std::string, GroupShape> shapes;
  const std::vector<Nanoseconds> beside = weight_gradients(profile, graph);
  for (const NodeId n : nodes_of(graph)) {
    const std::string axis = collective_axis(graph.node(n));
    if (axis.empty()) continue;
    if (!shapes.contains(axis)) shapes[axis] = shape_of(axis, run.mesh, network);
    const Node& node = graph.node(n);
    LayerCollectives times = collective_times(graph, node, shapes[axis], run, network);
    const bool gathers =
        node.op == "pfeife::all_reduce_gradient" || node.op == "pfeife::all_gather";
    if (run.overlap_input_gradients && axis == "tp" && gathers)
      times.backward -= std::min(times.backward, beside[node.outputs.front().index()]);
    profile.nodes[n.index()].forward += times.forward;
    profile.nodes[n.index()].backward_input += times.backward;
    all[n.index()] = times;
  }
  return all;
}

/// A collective node's kind; `combines`: tokens have been at their experts.
WorkKind collective_kind(const Node& node, bool combines) {
  const std::string axis = collective_axis(node);
  if (axis == "ep") return combines ? WorkKind::Combine : WorkKind::Dispatch;
  return axis == "cp" ? WorkKind::Context : WorkKind::Tensor;
}

/// The steps of the nodes [first, last]: what is computed between two collectives is a step.
std::vector<PassStep> steps_of(const Profile& profile, const Graph& graph,
                               const std::vector<LayerCollectives>& collectives, std::size_t first,
                               std::size_t last) {
  std::vector<PassStep> steps;
  const auto add_compute = [&](const PassStep& more) {
    if (steps.empty() || steps.back().kind != WorkKind::Compute) steps.push_back({});
    PassStep& step = steps.back();
    step.forward += more.forward, step.backward += more.backward, step.weight += more.weight;
  };
  bool combines = false;
  for (std::size_t n = first; n <= last; ++n) {
    const NodeProfile& cost = profile.nodes[n];
    const Node& node = graph.nodes[n];
    const LayerCollectives& waits = collectives[n];
    combines |= node.op == "aten::_grouped_mm";
    add_compute({.forward = cost.forward - waits.forward,
                 .backward = cost.backward_input - waits.backward,
                 .weight = cost.backward_weight});
    if (waits != LayerCollectives{})
      steps.push_back({collective_kind(node, combines), waits.forward, waits.backward});
  }
  return steps;
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
                  [&](const SavedStorage& saved) { return saved.value == storage.value; });
  }
}

/// How a kind of parameters is divided and reduced.
struct Kind {
  GroupShape group;
  double per_byte = 0;  ///< seconds of a gradient's byte
  double share = 0;     ///< of its devices' links of the level that joins it, while it reduces
};
/// Bytes that a device of a group sends over the level that joins the group for a byte that is
/// reduced; as seconds of that link.
double wire_per_byte(const GroupShape& group, const Network& network) {
  const std::size_t level = group.level();
  const std::int64_t inside = level == 0 ? 1 : group.within[level - 1];
  const auto members = static_cast<double>(group.ranks() / inside);
  const double rate = network.levels[level].bandwidth.value * static_cast<double>(inside);
  return 2 * (members - 1) / members / rate;
}
Kind kind_of(bool experts, const MeshLayers& pieces, const MeshRun& run, const Network& network) {
  Kind kind{gradient_group(run, experts, network)};
  Bytes all;
  for (std::size_t p = 0; p < pieces.of_experts.size(); ++p)
    if (pieces.of_experts[p] == experts) all += pieces.layers.parameters[p].bytes;
  const std::int64_t bytes =
      all.value / element_size(run.type).value * run.gradient_bytes / run.mesh.size(Axis::Pipeline);
  const auto time = [&](CollectiveKind collective) {
    return seconds(collective_time(collective, Bytes{bytes}, kind.group, network));
  };
  if (bytes > 0)  // with ZeRO gradients are scattered and parameters are gathered
    kind.per_byte =
        (run.zero >= 1 ? time(CollectiveKind::ReduceScatter) + time(CollectiveKind::AllGather)
                       : time(CollectiveKind::AllReduce)) /
        static_cast<double>(bytes);
  if (kind.per_byte > 0)
    kind.share = std::min(1.0, wire_per_byte(kind.group, network) / kind.per_byte);
  return kind;
}

/// Divides parameters of a run.
class StateDivision {
 public:
  StateDivision(const MeshLayers& pieces, const MeshRun& run, const Network& network)
      : run_(run),
        traffic_(run.kernels == RankKernels::Megatron
                     ? kMegatronTraffic / network.device.element_wise_rate().value
                     : 0),
        kinds_{kind_of(false, pieces, run, network), kind_of(true, pieces, run, network)} {}

  struct Parts {
    Bytes parameter, gradient, state;
    Nanoseconds reduction{0}, wire{0}, update{0};
  };
  /// The parts of a parameter whose state and update are undivided.
  Parts of(const LayerParameter& parameter, bool experts, bool cast) const {
    const Kind& kind = kinds_[experts ? 1 : 0];
    const std::int64_t count = parameter.bytes.value / element_size(run_.type).value;
    const std::int64_t replicas = kind.group.ranks();
    const auto divided = [&](std::int64_t bytes, bool yes) {
      return Bytes{yes ? (bytes + replicas - 1) / replicas : bytes};
    };
    // ZeRO 3 reduces in each backward.
    const double reduced =
        run_.zero >= 3 ? 0 : kind.per_byte * static_cast<double>(count * run_.gradient_bytes);
    const Recipe* const recipe = cast ? find_recipe(run_.format) : nullptr;
    const std::int64_t held = recipe
                                  ? std::llround(recipe->weight_bytes * static_cast<double>(count))
                                  : parameter.bytes.value;
    return {divided(held, run_.zero >= 3),
            divided(kGradient * count, run_.zero >= 2),
            divided(parameter.state.value, run_.zero >= 1),
            nanoseconds_from_seconds(reduced),
            nanoseconds_from_seconds(kind.share * reduced),
            nanoseconds_from_seconds(seconds(parameter.optimizer.front()) /
                                         static_cast<double>(run_.zero >= 1 ? replicas : 1) +
                                     traffic_ * static_cast<double>(count))};
  }

 private:
  const MeshRun& run_;
  double traffic_;  ///< seconds of an element
  std::array<Kind, 2> kinds_;
};

/// ZeRO 3 reduces in each backward.
bool overlaps(const MeshRun& run) { return run.overlap_reductions && run.zero < 3; }

/// Whether a parameter's reduction is in its optimizer time: what several layers use may be reduced
/// with other ranks first.
bool is_behind(const LayerParameter& parameter, const MeshRun& run) {
  return !overlaps(run) || parameter.users.size() > 1;
}

/// [layer] Its backward, without what may be recomputed in it, and no reduction yet.
std::vector<LayerReduction> beside_backwards(const MeshLayers& pieces) {
  std::vector<LayerReduction> of(pieces.layers.size());
  for (std::size_t l = 0; l < of.size(); ++l) {
    const LayerTimes& times = pieces.layers.layers[l].times.front();
    of[l].beside = times.backward_input + times.backward_weight;
  }
  return of;
}
void add_reduction(std::vector<LayerReduction>& of, const LayerParameter& parameter,
                   const MeshRun& run, const StateDivision::Parts& parts) {
  if (is_behind(parameter, run)) return;
  LayerReduction& reduction = of[parameter.users.front().index()];
  reduction.time += parts.reduction, reduction.wire += parts.wire;
}

void set_parameters(MeshLayers& pieces, const MeshRun& run, const Network& network) {
  const StateDivision division(pieces, run, network);
  pieces.reduction.clear(), pieces.behind.clear(), pieces.layers.reductions.clear();
  if (overlaps(run)) pieces.layers.reductions = beside_backwards(pieces);
  for (std::size_t p = 0; p < pieces.of_experts.size(); ++p) {
    LayerParameter& parameter = pieces.layers.parameters[p];
    const auto parts = division.of(parameter, pieces.of_experts[p], pieces.cast[p]);
    parameter.bytes = parts.parameter;
    parameter.gradient = parts.gradient, parameter.state = parts.state;
    parameter.exchanged = Bytes{parts.gradient.value / kGradient * run.gradient_bytes};
    pieces.behind.push_back(is_behind(parameter, run));
    parameter.optimizer = {parts.update +
                           (pieces.behind.back() ? parts.reduction : Nanoseconds{0})};
    add_reduction(pieces.layers.reductions, parameter, run, parts);
    pieces.reduction.push_back(parts.reduction);
  }
}

/// A tensor for each distinct matrix that linear layers multiply by, in place of the gradients that
/// a pass over such a layer holds.
Bytes put_placeholders(Profile& profile, const RankGraph& rank) {
  std::map<std::pair<std::int64_t, std::int64_t>, Bytes> placeholders;
  for (const NodeId n : rank.linear) {
    const TensorType& type = rank.graph.value(linear_weight(rank.graph.node(n))).type;
    PassBytes& temporary = profile.nodes[n.index()].temporary;
    temporary.backward -= type.bytes(), temporary.weight -= type.bytes();
    const std::int64_t rows = extent_from_back(type, 2), columns = extent_from_back(type, 1);
    placeholders[{rows, columns}] = rows * columns * element_size(type.dtype);
  }
  Bytes all;
  for (const auto& [shape, bytes] : placeholders) all += bytes;
  return all;
}

void note_kinds(MeshLayers& pieces, const MeshRun& run) {
  pieces.of_experts.clear(), pieces.cast.clear();
  for (const LayerParameter& parameter : pieces.layers.parameters) {
    pieces.of_experts.push_back(parameter.name.find(".experts.") != std::string::npos);
    pieces.cast.push_back(is_cast(parameter.name, pieces.cast_weights, run));
  }
}

/// Weights are cast with the optimizer step: read in 16 bits, written in two layouts.
void add_weight_casts(Profile& profile, const Graph& graph, const std::set<std::string>& weights,
                      const MeshRun& run, const DeviceKind& device) {
  const Recipe* const recipe = find_recipe(run.format);
  if (recipe == nullptr) return;
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!is_cast(graph.parameters[p].names.front(), weights, run)) continue;
    const double moved = (2 + recipe->amax_bytes + 2 * recipe->element_bytes) *
                         static_cast<double>(graph.parameters[p].type.elements());
    profile.parameters[p].optimizer += nanoseconds_from_seconds(
        seconds_at(Bytes{std::llround(moved)}, device.element_wise_rate()));
  }
}

void add_blocks(MeshLayers& pieces, const Architecture& of, Recompute recomputation) {
  pieces.blocks.clear(), pieces.first.clear();
  for (std::int64_t l = 0; l < of.layers; ++l) {
    const auto first = 1 + static_cast<std::size_t>(l) * kPiecesOfLayer;
    pieces.first.push_back(static_cast<std::int32_t>(first));
    if (recomputation == Recompute::Full)
      pieces.blocks.push_back({LayerId{first}, LayerId{first + 2}});
    if (recomputation == Recompute::Attention && layer_kind(of, l).mixer == MixerKind::Attention)
      pieces.blocks.push_back({LayerId{first + 1}, LayerId{first + 1}});
  }
}

/// What a transformer layer's costs depend on: its kind and its neighbours', and whether it is in
/// 16 bits at an end of the model.
using Likeness = std::tuple<std::optional<LayerKind>, LayerKind, std::optional<LayerKind>, bool>;
std::vector<Likeness> likenesses(const std::vector<LayerKind>& kinds, std::size_t wide) {
  std::vector<Likeness> all;
  const std::optional<LayerKind> none;
  for (std::size_t l = 0; l < kinds.size(); ++l)
    all.emplace_back(l > 0 ? kinds[l - 1] : none, kinds[l],
                     l + 1 < kinds.size() ? kinds[l + 1] : none,
                     l < wide || l + wide >= kinds.size());
  return all;
}

/// The transformer layers that are priced: the first ones and the last, as few as have one like
/// each of the model's.
struct PricedLayers {
  std::vector<LayerKind> kinds;
  std::vector<std::size_t> sources;  ///< [layer of the model] the priced one that it is like
};
PricedLayers priced_layers(const MeshRun& run) {
  const auto layers = static_cast<std::size_t>(run.architecture.layers);
  const Recipe* const recipe = find_recipe(run.format);
  const std::size_t wide = recipe ? static_cast<std::size_t>(recipe->wide_layers) : 0,
                    last = std::min(layers, std::max<std::size_t>(1, wide) + 1);
  PricedLayers priced;
  std::vector<LayerKind> kinds;
  for (std::size_t l = 0; l < layers; ++l)
    kinds.push_back(layer_kind(run.architecture, static_cast<std::int64_t>(l)));
  const std::vector<Likeness> wanted = likenesses(kinds, wide);
  for (std::size_t first = std::max<std::size_t>(1, wide);; ++first) {
    if (first + last >= layers) {
      priced.kinds = kinds;
    } else {
      priced.kinds.assign(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(first));
      priced.kinds.insert(priced.kinds.end(), kinds.end() - static_cast<std::ptrdiff_t>(last),
                          kinds.end());
    }
    const std::vector<Likeness> have = likenesses(priced.kinds, wide);
    priced.sources.clear();
    for (const Likeness& layer : wanted) {
      const auto like = std::ranges::find(have, layer);
      if (like == have.end()) break;
      priced.sources.push_back(static_cast<std::size_t>(like - have.begin()));
    }
    if (priced.sources.size() == layers) return priced;
  }
}

RankGraph graph_of(const MeshRun& run) {
  return rank_graph(run.architecture, run.mesh,
                    {.microbatch_size = run.microbatch_size,
                     .sequence_parallel = run.sequence_parallel,
                     .type = run.type,
                     .separate_experts = run.separate_experts,
                     .kernels = run.kernels,
                     .expert_imbalance = run.expert_imbalance});
}
Training training_of(const MeshRun& run) {  // the graph itself has the types of 16 bits
  return {.precision = Precision::Fp32,
          .optimizer = run.optimizer,
          .microbatch_size = run.microbatch_size};
}

/// Why microbatches of the run cannot be cut into slices; "" = they can.
std::string whole_because(const MeshRun& run) {
  if (run.mesh.size(Axis::Context) > 1)
    return "context parallelism divides the sequence already; plan for cp 1";
  if (run.architecture.attention == AttentionKind::Plain)
    return "plain attention keeps the scores of whole sequences; plan for attention: fused";
  for (std::int64_t l = 0; l < run.architecture.layers; ++l) {
    const LayerKind kind = layer_kind(run.architecture, l);
    if (kind.mixer != MixerKind::Attention)
      return "layer " + std::to_string(l) +
             " passes a state along the sequence, not keys and "
             "values";
    if (kind.chunk > 0 || (kind.window > 0 && kind.window < run.architecture.sequence))
      return "layer " + std::to_string(l) + " attends to a part of the sequence";
  }
  return "";
}

/// Sets layers.sequence, or else layers.whole_because. Collectives of a slice take its share of the
/// microbatch's; their latencies are not paid again.
void add_sequence(Layers& layers, const GraphFacts& facts, const Profile& profile,
                  const std::vector<Piece>& pieces, const MeshRun& run) {
  layers.whole_because = whole_because(run);
  if (!layers.whole_because.empty()) return;
  Sequence sequence{.tokens = run.architecture.sequence, .attention = {}, .keys_values = {}};
  std::size_t node = 0;
  for (const Piece& piece : pieces) {
    double attention = 0, all = 0;
    Bytes keys_values;
    for (; node <= piece.last.index(); ++node) {
      const NodeProfile& cost = profile.nodes[node];
      const auto time =
          static_cast<double>((cost.forward + cost.backward_input + cost.backward_weight).count());
      all += time;
      const OperatorTraits* traits = facts.traits[node];
      if (traits == nullptr || traits->work != OperatorWork::Attention) continue;
      attention += time;
      for (const char* operand : {"key", "value"})
        keys_values += facts.bytes(tensor_argument(facts.graph.nodes[node], operand));
    }
    sequence.attention.push_back(all > 0 ? attention / all : 0);
    sequence.keys_values.push_back(keys_values);
  }
  layers.sequence = std::move(sequence);
}

}  // namespace

GroupShape gradient_group(const MeshRun& run, bool of_experts, const Network& network) {
  const GroupShape all =
      group_shape(run.mesh, {Axis::Context, Axis::Data}, used_domains(run.mesh, network));
  if (!of_experts || run.mesh.experts == 1) return all;
  GroupShape every{.within = {}};  // ep-th of them
  for (const std::int64_t ranks : all.within)
    every.within.push_back(std::max<std::int64_t>(1, ranks / run.mesh.experts));
  return every;
}

MeshLayers priced_layer_by_layer(const MeshRun& run, const Network& network) {
  const RankGraph rank = graph_of(run);
  const FactsByPrecision facts(rank.graph);
  const std::vector<Format> formats = formats_of(rank, run);
  Profile profile = roofline_profile(facts, network.device, training_of(run), {}, formats);
  const Bytes placeholders =
      run.kernels == RankKernels::Megatron ? put_placeholders(profile, rank) : Bytes{0};
  profile.parameters = updates_with_masters(rank.graph, network.device, run.optimizer);
  const std::set<std::string> weights = cast_weights(rank.graph, formats);
  add_weight_casts(profile, rank.graph, weights, run, network.device);
  const std::vector<ModuleNodes> again = chosen_modules(rank, run);
  keep_casts(profile, rank.graph, formats, run, discarded_values(rank.graph, again));
  std::vector<LayerCollectives> collectives = add_collectives(profile, rank.graph, run, network);
  if (run.sequence_parallel) keep_parts(profile, rank.graph);
  recompute_modules(profile, collectives, facts.at(Precision::Fp32), again);
  std::vector<bool> ends(rank.graph.nodes.size(), false);
  for (const Piece& piece : rank.pieces) ends[piece.last.index()] = true;
  ends.back() = false;  // the last layer ends by itself
  MeshLayers pieces;
  pieces.cast_weights = weights;
  pieces.placeholders = placeholders;
  pieces.layers = layers_from_graph(facts, {profile}, ends);
  PFEIFE_CHECK(pieces.layers.size() == rank.pieces.size(), pieces.layers.size(), " layers for ",
               rank.pieces.size(), " pieces");
  for (Layer& layer : pieces.layers.layers) layer.nodes.clear();  // one may stand for many
  pieces.layers.overlap_factor = run.overlap_factor;
  std::size_t node = 0;
  for (const Piece& piece : rank.pieces) {
    LayerCollectives sum;
    if (run.overlap_streams)
      pieces.layers.steps.push_back(
          steps_of(profile, rank.graph, collectives, node, piece.last.index()));
    for (; node <= piece.last.index(); ++node) {
      sum.forward += collectives[node].forward;
      sum.backward += collectives[node].backward;
    }
    pieces.layers.collectives.push_back(sum);
  }
  add_sequence(pieces.layers, facts.at(Precision::Fp32), profile, rank.pieces, run);
  take_measured_layers(pieces.layers, run, network.measured_layers);
  if (run.activation_factor != 1)
    scale_activations(pieces.layers, 0, pieces.layers.size(), run.activation_factor,
                      run.activation_factor);
  note_kinds(pieces, run);
  add_blocks(pieces, run.architecture, Recompute::None);
  return pieces;
}

std::vector<ProductUse> mesh_products(const MeshRun& run, const Network& network) {
  const RankGraph rank = graph_of(run);
  return product_uses(FactsByPrecision(rank.graph), network.device, training_of(run), {},
                      formats_of(rank, run));
}

MeshLayers rank_layers(const MeshRun& run, const Network& network) {
  PricedLayers priced = priced_layers(run);
  MeshRun few = run;
  few.architecture.layers = static_cast<std::int64_t>(priced.kinds.size());
  few.architecture.pattern = std::move(priced.kinds);
  MeshLayers pieces = priced_layer_by_layer(few, network);
  if (few.architecture.layers == run.architecture.layers) return pieces;
  pieces.layers = repeat_layers(pieces.layers, priced.sources);
  note_kinds(pieces, run);
  add_blocks(pieces, run.architecture, Recompute::None);
  return pieces;
}

void divide_state(MeshLayers& pieces, const MeshRun& run, const Network& network) {
  if (run.zero >= 3) {
    add_sharding(pieces, run, network);
    pieces.layers.sequence.reset();
    pieces.layers.whole_because =
        "ZeRO 3 gathers the weights of a layer for each microbatch; plan for zero 2 or less";
  }
  set_parameters(pieces, run, network);
  add_blocks(pieces, run.architecture, run.recomputation);
}

StateSums divided_state(const MeshLayers& pieces, const MeshRun& run, const Network& network) {
  const StateDivision division(pieces, run, network);
  StateSums sums;
  if (overlaps(run)) sums.reductions = beside_backwards(pieces);
  for (std::size_t p = 0; p < pieces.of_experts.size(); ++p) {
    const LayerParameter& parameter = pieces.layers.parameters[p];
    const auto parts = division.of(parameter, pieces.of_experts[p], pieces.cast[p]);
    sums.fixed += parts.parameter + parts.gradient + parts.state;
    sums.optimizer += parts.update;
    if (is_behind(parameter, run)) sums.optimizer += parts.reduction;
    add_reduction(sums.reductions, parameter, run, parts);
  }
  if (run.mesh.size(Axis::Pipeline) == 1)
    sums.optimizer += exposed_reduction(sums.reductions, 0, sums.reductions.size());
  return sums;
}

MeshLayers mesh_layers(const MeshRun& run, const Network& network) {
  MeshLayers pieces = rank_layers(run, network);
  divide_state(pieces, run, network);
  return pieces;
}

}  // namespace pfeife
