#include "planner/mesh/mesh_price.h"

#include <algorithm>
#include <optional>

#include "planner/cost/estimate/estimator.h"
#include "planner/cost/stages/stage_costs.h"
#include "planner/cost/stages/word_shares.h"
#include "planner/ir/basics/error.h"
#include "planner/ir/schedule/lower.h"
#include "planner/mesh/repeat_layer.h"
#include "planner/mesh/shared_head.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

/// Stages of equally many layers, as layers_of_stages() says.
Partition equal_partition(const MeshRun& run, const MeshLayers& pieces) {
  const std::vector<std::int64_t> counts = layers_of_stages(run);
  Partition partition;
  std::int64_t before = 0;
  for (std::size_t s = 0; s + 1 < counts.size(); ++s) {
    before += counts[s];
    // Behind the last layer of the stage; past all of them, before the head.
    const auto next = static_cast<std::size_t>(before);
    const std::int32_t begin = next < pieces.first.size()
                                   ? pieces.first[next]
                                   : static_cast<std::int32_t>(pieces.layers.size()) - 1;
    partition.cuts.push_back(begin - 1);
  }
  return partition;
}

Nanoseconds work(const Layer& layer) {
  const LayerTimes& times = layer.times.front();
  return times.forward + times.backward_input + times.backward_weight;
}

/// First-fit from the back into stages of at most `most`, each of which leaves a piece for each
/// earlier one: early stages, which keep most, then have the least. The first piece of each stage
/// but the first; nothing if they do not fit.
std::optional<std::vector<std::size_t>> begins_within(const std::vector<Nanoseconds>& piece_work,
                                                      std::size_t stages, Nanoseconds most) {
  std::vector<std::size_t> begins;
  Nanoseconds sum{0};
  for (std::size_t p = piece_work.size(); p-- > 0;) {
    if (piece_work[p] > most) return std::nullopt;
    const bool needed = p + 1 < stages - begins.size();  // a piece a stage from here on
    if (p + 1 < piece_work.size() && (sum + piece_work[p] > most || needed)) {
      if (begins.size() + 1 == stages) return std::nullopt;
      begins.push_back(p + 1);
      sum = Nanoseconds{0};
    }
    sum += piece_work[p];
  }
  if (begins.size() + 1 < stages) return std::nullopt;
  std::ranges::reverse(begins);
  return begins;
}

Partition balanced_partition(const MeshRun& run, const MeshLayers& pieces) {
  const auto stages = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline) * run.stages_per_rank);
  std::vector<Nanoseconds> piece_work = {work(pieces.layers.layers.front())};
  std::vector<std::int32_t> last = {0};  // [piece] its last layer
  for (const std::int32_t first : pieces.first) {
    Nanoseconds sum{0};
    for (std::size_t l = 0; l < kPiecesOfLayer; ++l)
      sum += work(pieces.layers.layers[static_cast<std::size_t>(first) + l]);
    piece_work.push_back(sum);
    last.push_back(first + static_cast<std::int32_t>(kPiecesOfLayer) - 1);
  }
  piece_work.push_back(work(pieces.layers.layers.back()));
  Nanoseconds low{0}, high{0};  // (low, high]
  for (const Nanoseconds piece : piece_work) high += piece;
  while (high - low > Nanoseconds{1}) {
    const Nanoseconds middle = low + (high - low) / 2;
    (begins_within(piece_work, stages, middle) ? high : low) = middle;
  }
  const auto begins = begins_within(piece_work, stages, high);
  PFEIFE_CHECK(begins, stages, " stages of ", piece_work.size(), " pieces");
  Partition partition;
  for (const std::size_t begin : *begins) partition.cuts.push_back(last[begin - 1]);
  return partition;
}

/// [rank] the sums over its stages.
std::vector<MeshShares> shares_of(const MeshRun& run, const MeshLayers& pieces,
                                  const Partition& partition, const Placement& placement,
                                  const StageCosts& costs) {
  std::vector<MeshShares> shares(placement.ranks());
  const std::int64_t microbatches = run.microbatches();
  std::vector<RankId> rank_of;  // [layer]
  for (std::size_t s = 0; s < partition.stages(); ++s) {
    rank_of.resize(partition.end(s, pieces.layers.size()), placement.rank(StageId{s}));
    MeshShares& of = shares[placement.rank(StageId{s}).index()];
    const StageCost& cost = costs.stages[s];
    of.compute += microbatches * (cost.forward + cost.backward_input + cost.backward_weight +
                                  cost.head_share + cost.head_rest);
    of.optimizer += cost.optimizer;
  }
  std::vector<bool> again(pieces.layers.size(), false);
  for (const LayerRange& block : pieces.blocks)
    std::fill(again.begin() + block.first.value, again.begin() + block.last.value + 1, true);
  for (std::size_t l = 0; l < pieces.layers.size(); ++l) {
    const LayerCollectives& both = pieces.layers.collectives[l];
    MeshShares& of = shares[rank_of[l].index()];
    const Nanoseconds exposed = microbatches * ((again[l] ? 2 : 1) * both.forward + both.backward);
    of.collectives += exposed, of.compute -= exposed;
  }
  for (std::size_t p = 0; p < pieces.reduction.size(); ++p) {
    std::vector<RankId> done;
    for (const LayerId user : pieces.layers.parameters[p].users) {
      const RankId rank = rank_of[user.index()];
      if (std::ranges::find(done, rank) != done.end()) continue;
      done.push_back(rank);
      shares[rank.index()].reduction += pieces.reduction[p];
      if (pieces.behind[p]) shares[rank.index()].exposed += pieces.reduction[p];
    }
  }
  for (MeshShares& of : shares) of.optimizer -= of.exposed;
  return shares;
}

/// The layers without those whose words all ranks divide, with a rank's share of them.
MeshLayers with_divided_words(const MeshRun& run, MeshLayers pieces, const Network& network) {
  if (const std::string why = undivided_because(run); !why.empty())
    throw ConfigError({}, "ranks cannot share the output layer: " + why);
  pieces.layers.words = word_share(run, pieces.layers, network);
  pieces.layers = divided_among(std::move(pieces.layers), pieces.layers.words->ranks);
  for (std::size_t p = 0; p < pieces.reduction.size(); ++p)
    if (pieces.layers.parameters[p].bytes == Bytes{0}) pieces.reduction[p] = Nanoseconds{0};
  return pieces;
}

/// [rank] How long its replicas still reduce when it has done its last backward.
std::vector<Nanoseconds> left_to_reduce(const Prices& plan, const Placement& placement) {
  std::vector<Nanoseconds> left;
  if (placement.stages() == placement.ranks()) {
    for (const ReplicaReduction& of : plan.costs.replicas) left.push_back(of.behind);
    return left;
  }
  const Trace trace = std::get<Trace>(estimate(
      dependencies(plan.lowered, stage_graph(plan.costs), placement, Semantics{}), plan.costs));
  std::vector<Nanoseconds> computed(placement.ranks(), Nanoseconds{0});
  left = computed;
  for (const Event& event : trace.events) {
    const std::size_t r = event.rank.index();
    if (event.kind == TaskKind::Compute) computed[r] = std::max(computed[r], event.end);
    if (event.kind == TaskKind::Reduction && event.parties.size() == 1)
      left[r] = std::max(left[r], event.end);
  }
  for (std::size_t r = 0; r < left.size(); ++r)
    left[r] = std::max(left[r] - computed[r], Nanoseconds{0});
  return left;
}

/// Whether ranks a and b of a pipeline are in one host. Of all pipelines, if they are alike.
bool same_host(const Mesh& mesh, std::int64_t a, std::int64_t b, std::int64_t devices_per_host) {
  const std::int64_t stride = mesh.stride(Axis::Pipeline), size = mesh.size(Axis::Pipeline);
  const auto within = [&](std::int64_t d) {
    return (d + a * stride) / devices_per_host == (d + b * stride) / devices_per_host;
  };
  const bool near = within(0);
  if (hosts_align(mesh, devices_per_host)) return near;
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    if (d / stride % size != 0 || within(d) == near) continue;
    throw ConfigError(
        {}, stream_all("ranks ", a, " and ", b, " of the pipelines of ", to_string(mesh),
                       " are not alike: devices ", a * stride, " and ", b * stride, " are ",
                       near ? "in one host" : "in two hosts", ", devices ", d + a * stride, " and ",
                       d + b * stride, near ? " are not" : " in one", "; choose sizes or an ",
                       "order of axes that divide hosts of ", devices_per_host, " devices"));
  }
  return near;
}

}  // namespace

Partition mesh_partition(const MeshRun& run, const MeshLayers& pieces) {
  return run.balanced ? balanced_partition(run, pieces) : equal_partition(run, pieces);
}

Cluster pipeline_cluster(const MeshRun& run, const Network& hosts) {
  const Mesh& mesh = run.mesh;
  const Network network = message_network(run, hosts);
  const auto ranks = static_cast<std::size_t>(mesh.size(Axis::Pipeline));
  Cluster cluster{
      .name = network.name, .kinds = {mesh_device(run, network)}, .notes = network.notes};
  cluster.kind_of_device.assign(ranks, 0);
  const std::vector<std::int64_t> domains = used_domains(mesh, network);
  cluster.devices_per_node = ranks_in_domain(mesh, domains.front());
  if (cluster.devices_per_node == 1 || cluster.devices_per_node == ranks)
    cluster.devices_per_node = 0;
  cluster.paths.resize(ranks * ranks);
  // [(level * ranks + rank) * 2 + into] Out of a rank and into it, where messages go there.
  std::vector<std::optional<std::size_t>> numbers(2 * network.levels.size() * ranks);
  const auto number_of = [&](std::size_t level, std::size_t rank,
                             bool into) -> std::optional<std::size_t>& {
    return numbers[(level * ranks + rank) * 2 + (into ? 1 : 0)];
  };
  const auto link_of = [&](std::size_t level, std::size_t rank, bool into) {
    std::optional<std::size_t>& number = number_of(level, rank, into);
    if (number) return *number;
    number = cluster.links.size();
    cluster.links.push_back(
        {level_link(level) + "[" + std::to_string(rank) + (into ? "].down" : "].up"),
         network.levels[level].bandwidth});
    return *number;
  };
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b) {
      if (a == b) continue;
      std::size_t level = 0;
      while (level + 1 < domains.size() &&
             !same_host(mesh, static_cast<std::int64_t>(std::min(a, b)),
                        static_cast<std::int64_t>(std::max(a, b)), domains[level]))
        ++level;
      Path& path = cluster.paths[a * ranks + b];
      path.links = {link_of(level, a, false), link_of(level, b, true)};
      path.latency = network.levels[level].latency;
      path.bandwidth.points = {{Bytes{1}, network.levels[level].bandwidth}};
    }
  const std::size_t reduced_over = gradient_group(run, false, network).level();
  std::vector<std::vector<std::size_t>> rings(ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    for (const bool into : {false, true})
      if (const auto link = number_of(reduced_over, r, into)) rings[r].push_back(*link);
  cluster.rings = std::move(rings);
  return cluster;
}

MeshPrice price_mesh(const MeshRun& run, const MeshLayers& all, const Network& network) {
  const bool shared = family(run.schedule).head_barriers > 0;
  const MeshLayers rest = shared ? with_divided_words(run, all, network) : MeshLayers{};
  const MeshLayers& pieces = shared ? rest : all;
  const ScheduleSpec spec{.family = run.schedule,
                          .ranks = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline)),
                          .microbatches = static_cast<std::size_t>(run.microbatches()),
                          .stages_per_rank = static_cast<std::size_t>(run.stages_per_rank)};
  const Schedule schedule = generate(spec);
  MeshPrice price;
  price.placement = placement_for(spec);
  price.partition = mesh_partition(run, pieces);
  StageCosts costs = stage_costs(pieces.layers, price.partition, price.placement,
                                 pipeline_cluster(run, network), {.blocks = pieces.blocks});
  if (shared) add_word_shares(costs, *pieces.layers.words, schedule);
  price.shares = shares_of(run, pieces, price.partition, price.placement, costs);
  Schedule lowered = lower(schedule, costs, price.placement);
  price.plan = evaluate_lowered(std::move(costs), std::move(lowered), price.placement);
  for (Bytes& peak : price.plan.peak_memory) peak += pieces.placeholders;
  if (price.plan.costs.replicas.empty()) return price;
  const std::vector<Nanoseconds> left = left_to_reduce(price.plan, price.placement);
  for (std::size_t r = 0; r < left.size(); ++r) price.shares[r].exposed += left[r];
  return price;
}

MeshPrice price_mesh(const MeshRun& run, const Network& network) {
  check_run(run);
  return price_mesh(run, mesh_layers(run, network), network);
}

}  // namespace pfeife
