#include "planner/mesh/mesh_price.h"

#include <algorithm>

#include "planner/cost/stage_costs.h"
#include "planner/ir/lower.h"
#include "planner/schedules/families.h"

namespace pfeife {
namespace {

Partition partition_of(const MeshRun& run, const MeshLayers& made) {
  const std::vector<std::int64_t> counts = layers_of_stages(run);
  Partition partition;
  std::int64_t before = 0;
  for (std::size_t s = 0; s + 1 < counts.size(); ++s) {
    before += counts[s];
    // Behind the last layer of the stage; past all of them, before the head.
    const auto next = static_cast<std::size_t>(before);
    const std::int32_t begin = next < made.first.size()
                                   ? made.first[next]
                                   : static_cast<std::int32_t>(made.layers.size()) - 1;
    partition.cuts.push_back(begin - 1);
  }
  return partition;
}

/// [rank] the time its gradients take, each group's in one message.
std::vector<Nanoseconds> reductions(const MeshRun& run, const MeshLayers& made,
                                    const Partition& partition, const Placement& placement,
                                    const Network& network) {
  std::vector<StageId> stage_of;
  for (std::size_t s = 0; s < partition.stages(); ++s)
    stage_of.resize(partition.end(s, made.layers.size()), StageId{s});
  struct Message {
    GroupShape group;
    Bytes bytes;
  };
  std::vector<std::vector<Message>> messages(placement.ranks());
  for (const LayerParameter& parameter : made.layers.parameters) {
    const GroupShape group = gradient_group(run, parameter, network);
    const std::int64_t count = parameter.bytes.value / element_size(run.type).value;
    std::vector<RankId> done;
    for (const LayerId user : parameter.users) {
      const RankId rank = placement.rank(stage_of[user.index()]);
      if (std::ranges::find(done, rank) != done.end()) continue;
      done.push_back(rank);
      std::vector<Message>& of = messages[rank.index()];
      auto at = std::ranges::find(of, group, &Message::group);
      if (at == of.end()) at = of.insert(of.end(), {group, Bytes{0}});
      at->bytes += Bytes{count * run.gradient_bytes};
    }
  }
  std::vector<Nanoseconds> times(placement.ranks(), Nanoseconds{0});
  for (std::size_t r = 0; r < times.size(); ++r)
    for (const Message& message : messages[r])
      times[r] += collective_time(CollectiveKind::AllReduce, message.bytes, message.group, network);
  return times;
}

}  // namespace

Cluster pipeline_cluster(const Mesh& mesh, const Network& network) {
  const auto ranks = static_cast<std::size_t>(mesh.size(Axis::Pipeline));
  Cluster cluster{.name = network.name, .kinds = {network.device}, .notes = network.notes};
  cluster.kind_of_device.assign(ranks, 0);
  cluster.paths.resize(ranks * ranks);
  const auto host = [&](std::size_t rank) {
    return static_cast<std::int64_t>(rank) * mesh.stride(Axis::Pipeline) / network.devices_per_host;
  };
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b) {
      if (a == b) continue;
      const bool near = host(a) == host(b);
      Path& path = cluster.paths[a * ranks + b];
      path.latency = near ? network.port_latency : network.nic_latency;
      path.bandwidth.points = {{Bytes{1}, near ? network.port : network.nic}};
    }
  return cluster;
}

MeshPrice price_mesh(const MeshRun& run, const Network& network) {
  check_run(run);
  const MeshLayers made = mesh_layers(run, network);
  const ScheduleSpec spec{.family = run.schedule,
                          .ranks = static_cast<std::size_t>(run.mesh.size(Axis::Pipeline)),
                          .microbatches = static_cast<std::size_t>(run.microbatches()),
                          .stages_per_rank = static_cast<std::size_t>(run.stages_per_rank)};
  const Schedule schedule = generate(spec);
  MeshPrice price;
  price.placement = placement_for(spec);
  price.partition = partition_of(run, made);
  StageCosts costs = stage_costs(made.layers, price.partition, price.placement,
                                 pipeline_cluster(run.mesh, network), {}, made.blocks);
  price.shares.resize(price.placement.ranks());
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    price.shares[price.placement.rank(StageId{s}).index()].optimizer += costs.stages[s].optimizer;
  const std::vector<Nanoseconds> reduced =
      reductions(run, made, price.partition, price.placement, network);
  for (std::size_t r = 0; r < reduced.size(); ++r) {
    price.shares[r].reduction = reduced[r];
    const auto first = std::ranges::find(price.placement.rank_of_stage, RankId{r});
    costs.stages[static_cast<std::size_t>(first - price.placement.rank_of_stage.begin())]
        .optimizer += reduced[r];
  }
  Schedule lowered = lower(schedule, costs, price.placement);
  price.plan = evaluate_lowered(std::move(costs), std::move(lowered), price.placement);
  return price;
}

}  // namespace pfeife
