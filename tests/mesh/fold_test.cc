// One pipeline stands for all of a mesh: folded and unfolded steps are equal to the nanosecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "planner/io/cluster/mesh_file.h"
#include "planner/io/cluster/network_reader.h"
#include "planner/io/files/text_file.h"
#include "planner/io/files/yaml.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/ir/request/pipeline.h"
#include "planner/ir/schedule/lower.h"
#include "planner/mesh/mesh_price.h"
#include "planner/schedules/families.h"
#include "sim/simulator.h"
#include "tests/mesh/configs.h"
#include "tests/support/scratch_folder.h"

namespace pfeife {
namespace {

MeshRun pp2_tp2_dp4() {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures/llama3_8b.yaml");
  run.architecture.layers = 6, run.architecture.sequence = 1024;
  run.mesh.sizes = {2, 1, 2, 4};
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  run.global_batch = 16;
  run.type = DType::BFloat16;
  run.balanced = true;
  return run;
}

/// The hosts with rates, factors and latencies of any digits.
Network random_network(Network network, std::mt19937& random) {
  const auto within = [&](double least, double most) {
    return std::uniform_real_distribution<>(least, most)(random);
  };
  for (NetworkLevel& level : network.levels) {
    level.bandwidth = {within(1e8, &level == &network.levels.front() ? 1e12 : 1e11)};
    level.latency = Nanoseconds{random() % 100'000};
  }
  network.device.compute_factor = within(0.5, 3);
  network.device.memory_bandwidth = {within(1e11, 1e13)};
  for (auto& [precision, peak] : network.device.peak) peak = {within(1e12, 1e15)};
  return network;
}

// The files of a mesh, for certify and for people, say to the last bit what is planned: in one
// host, in two, and in between.
TEST(Fold, TheFilesOfAMeshReadAsTheValuesThatWereWritten) {
  const Network shipped = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  const std::filesystem::path architecture = kConfigs / "architectures/llama3_8b.yaml";
  const ScratchFolder scratch;
  const std::filesystem::path& folder = scratch.path();
  std::mt19937 random(1);
  for (const std::array<std::int64_t, kAxes>& sizes : {std::array<std::int64_t, kAxes>{2, 1, 2, 2},
                                                       {2, 1, 4, 4},
                                                       {2, 1, 8, 2},
                                                       {1, 1, 1, 4},
                                                       {1, 1, 4, 8},
                                                       {8, 1, 4, 2}})
    for (const auto& [outermost, pods] : {std::pair{Axis::Pipeline, false},
                                          {Axis::Data, false},
                                          {Axis::Pipeline, true},
                                          {Axis::Data, true}}) {
      Network joined = shipped;
      if (pods) joined.levels.insert(joined.levels.begin() + 1, {16});
      Network network = random_network(joined, random);
      if (pods && network.levels[1].bandwidth < network.levels[2].bandwidth)
        std::swap(network.levels[1].bandwidth, network.levels[2].bandwidth);
      MeshRun run = pp2_tp2_dp4();
      run.architecture = read_architecture(architecture);
      run.architecture.sequence = 1024;
      run.mesh.sizes = sizes;
      if (outermost == Axis::Data) std::swap(run.mesh.order[2], run.mesh.order[3]);
      run.scatter_gather = run.once_a_host = run.overlap_streams = sizes[2] > 2;
      run.overlap_factor = 1 + 1e-6 * static_cast<double>(random());
      if (run.overlap_factor > 4) run.overlap_factor = 4 / run.overlap_factor + 1;
      const std::string hosts = network_text(network);
      write_mesh_files(folder, run, network, read_text_file(architecture).text, hosts);
      SCOPED_TRACE(to_string(run.mesh));
      const MeshFile read = read_mesh_file(folder / "mesh.yaml");
      EXPECT_TRUE(read.run == pipeline_run(run));
      EXPECT_TRUE(read.network == network) << hosts;
      const Cluster cluster = read_cluster(folder / "cluster.yaml");
      Cluster folded = pipeline_cluster(run, network);
      folded.file = cluster.file, folded.digest = cluster.digest;
      EXPECT_TRUE(cluster == folded) << read_text_file(folder / "cluster.yaml").text;
    }
}

// 64 MB between hosts from each of four ranks that have it alike: a quarter through each one's wire
// (45.5 GB/s, 20 us), and three quarters gathered from the others' ports (370 GB/s, 15 us).
TEST(Fold, AMessageThatAllOfAHostHaveGoesInParts) {
  const Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  MeshRun run = pp2_tp2_dp4();
  run.mesh.sizes = {4, 1, 4, 2};
  const auto time = [&] {
    return seconds(transfer_time(pipeline_cluster(run, network).path(DeviceId{0}, DeviceId{1}),
                                 Bytes{64'000'000}));
  };
  const double whole = 20e-6 + 64e6 / 45.5e9;
  EXPECT_NEAR(time(), whole, 1e-9);
  run.scatter_gather = true;
  EXPECT_NEAR(time(), 35e-6 + 16e6 / 45.5e9 + 48e6 / 370e9, 1e-9);
  run.sequence_parallel = true;  // which has parts anyway
  EXPECT_NEAR(time(), whole, 1e-9);
  run.sequence_parallel = false;
  run.mesh.sizes = {16, 1, 2, 1};  // over two hosts: there is nothing to gather within one
  EXPECT_NEAR(time(), whole, 1e-9);
}

/// All pipelines of a mesh beside one another on all its devices: rank p of pipeline i is rank
/// i * pp + p, its stages are those of the folded one from i * stages on.
struct Unfolded {
  Schedule schedule;  // compute only
  StageCosts costs;
  Placement placement;
  Cluster cluster;  // a ring is one flow over the links of all its members, the first has it
};
/// The links that all replicas of a device reduce over, if it is the first of them: NICs if they
/// are in two hosts.
std::vector<std::size_t> whole_ring(const Mesh& mesh, DeviceId device, const Cluster& cluster,
                                    std::int64_t per_host) {
  const std::vector<DeviceId> members = group_of(mesh, device, {Axis::Context, Axis::Data});
  if (members.front() != device) return {};
  const bool far = members.front().value / per_host != members.back().value / per_host;
  std::vector<std::size_t> links;
  for (const DeviceId member : members)
    for (std::size_t link = 0; link < cluster.links.size(); ++link)
      if (cluster.links[link].name.starts_with((far ? "nic[" : "port[") + to_string(member) + "]."))
        links.push_back(link);
  return links;
}
Unfolded unfold(const MeshRun& run, const MeshPrice& folded, const Schedule& one,
                const Cluster& cluster, std::int64_t per_host) {
  Unfolded all;
  all.cluster = cluster;
  all.cluster.rings.emplace();
  for (std::size_t d = 0; d < cluster.devices(); ++d)
    all.cluster.rings->push_back(whole_ring(run.mesh, DeviceId{d}, cluster, per_host));
  const auto ranks = static_cast<std::int32_t>(folded.placement.ranks());
  const auto stages = static_cast<std::int32_t>(folded.placement.stages());
  const auto more = [](auto id, std::int32_t by) { return decltype(id){id.value + by}; };
  std::int32_t pipeline = 0;
  for (std::int64_t d = 0; d < run.mesh.devices(); ++d) {
    Coordinates at = coordinates_of(run.mesh, DeviceId{d});
    auto& p = at[static_cast<std::size_t>(Axis::Pipeline)];
    if (p != 0) continue;
    for (auto row : one.rows) {
      for (Cell& cell : row)
        if (Action* action = std::get_if<Action>(&cell))
          action->stage = more(action->stage, pipeline * stages);
      all.schedule.rows.push_back(std::move(row));
    }
    for (const RankId rank : folded.placement.rank_of_stage)
      all.placement.rank_of_stage.push_back(more(rank, pipeline * ranks));
    for (p = 0; p < ranks; ++p) all.placement.device_of_rank.push_back(device_at(run.mesh, at));
    const StageCosts& costs = folded.plan.costs;
    all.costs.stages.insert(all.costs.stages.end(), costs.stages.begin(), costs.stages.end());
    for (const ReplicaReduction& reduction : costs.replicas)
      all.costs.replicas.push_back(
          at[static_cast<std::size_t>(Axis::Data)] == 0 ? reduction : ReplicaReduction{});
    for (StagePair pair : costs.pairs) {
      pair.from = more(pair.from, pipeline * stages), pair.to = more(pair.to, pipeline * stages);
      const Path& there =
          cluster.path(all.placement.device(pair.from), all.placement.device(pair.to));
      const Path& back =
          cluster.path(all.placement.device(pair.to), all.placement.device(pair.from));
      pair.forward_time = transfer_time(there, pair.bytes);
      pair.backward_time = transfer_time(back, pair.gradient_bytes);
      all.costs.pairs.push_back(pair);
    }
    for (StageValue value : costs.values) {
      value.from = more(value.from, pipeline * stages);
      for (StageId& to : value.to) to = more(to, pipeline * stages);
      all.costs.values.push_back(std::move(value));
    }
    ++pipeline;
  }
  return all;
}

/// On links that are shared.
Nanoseconds simulated(const Schedule& compute_only, const StageCosts& costs,
                      const Placement& placement, const Cluster& cluster) {
  const DependencyGraph graph =
      dependencies(lower(compute_only, costs, placement), stage_graph(costs), placement,
                   {.queues = Queues::Pair, .links = Links::Shared});
  return step_time(std::get<Trace>(simulate(graph, costs, placement, cluster)));
}

/// Sixteen devices, each with a port within its host and a network card of its own.
Cluster sixteen(const std::filesystem::path& hosts, std::int64_t per_host) {
  return read_cluster(hosts,
                      {YamlDocument::assignment("devices=[{kind: h100_sxm, count: 16}]"),
                       YamlDocument::assignment("devices_per_node=" + std::to_string(per_host)),
                       YamlDocument::assignment(
                           "links=[{name: port, per: device, within: node, bandwidth: 370 GB/s}, "
                           "{name: nic, per: device, bandwidth: 45.5 GB/s}]"),
                       YamlDocument::assignment(
                           "routes=[{over: port, latency: 15 us}, {over: nic, latency: 20 us}]")});
}

// Two hosts or four. Stages are neighbours across hosts (order tp, dp, pp) or within one (order tp,
// pp, dp).
TEST(Fold, OnePipelineTakesAsLongAsAllOfThemOnAllDevicesEstimatedAndSimulated) {
  const auto hosts = kConfigs / "clusters/h100_sxm_hosts.yaml";
  struct Case {
    std::array<std::int64_t, kAxes> sizes;
    std::array<Axis, kAxes> order;
    std::int64_t per_host;
  };
  std::vector<Case> cases;
  for (const std::array<Axis, kAxes>& order :
       {std::array{Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline},
        std::array{Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data},
        std::array{Axis::Pipeline, Axis::Context, Axis::Tensor, Axis::Data}})
    for (const std::int64_t tp : {1, 2, 4})
      for (const std::int64_t pp : {2, 4})
        for (const std::int64_t per_host : {8, 4})
          cases.push_back({{tp, 1, pp, 16 / tp / pp}, order, per_host});
  std::size_t reduce_beside = 0, of_all = 0, meet = 0;
  for (const auto& [sizes, order, per_host] : cases) {
    Network network = read_network(hosts);
    network.devices_per_host = network.levels.front().devices = per_host;
    const Cluster cluster = sixteen(hosts, per_host);
    MeshRun run = pp2_tp2_dp4();
    run.mesh.sizes = sizes, run.mesh.order = order;
    if (of_all++ % 3 < 2) run.overlap_reductions = true;
    if (of_all % 4 == 0 && sizes[2] == 2)
      run.stages_per_rank = 3, run.schedule = "interleaved_1f1b";
    const MeshPrice folded = price_mesh(run, network);
    const Schedule one =
        generate({.family = run.schedule,
                  .ranks = static_cast<std::size_t>(sizes[2]),
                  .microbatches = static_cast<std::size_t>(run.microbatches()),
                  .stages_per_rank = static_cast<std::size_t>(run.stages_per_rank)});
    reduce_beside += !folded.plan.costs.replicas.empty();
    const Unfolded all = unfold(run, folded, one, cluster, per_host);
    SCOPED_TRACE(to_string(run.mesh));
    ASSERT_EQ(all.placement.ranks(), 16u);
    const Prices unfolded =
        evaluate_lowered(all.costs, lower(all.schedule, all.costs, all.placement), all.placement);
    EXPECT_EQ(unfolded.estimate, folded.plan.estimate);
    EXPECT_EQ(unfolded.peak_memory.back(), folded.plan.peak_memory.back());
    if (!simulator_available()) continue;
    const Cluster folded_cluster = pipeline_cluster(run, network);
    const Nanoseconds step = simulated(one, folded.plan.costs, folded.placement, folded_cluster);
    EXPECT_EQ(simulated(all.schedule, all.costs, all.placement, all.cluster), step);
    StageCosts apart = folded.plan.costs;  // whose reductions share no link
    for (ReplicaReduction& reduction : apart.replicas) reduction.wire = Nanoseconds{0};
    meet += step > simulated(one, apart, folded.placement, folded_cluster);
  }
  EXPECT_GT(reduce_beside, 5u);
  EXPECT_TRUE(meet > 2 || !simulator_available()) << "messages and what is reduced";
}

}  // namespace
}  // namespace pfeife
