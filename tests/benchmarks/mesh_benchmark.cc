// How long a mesh takes to be priced, and all meshes to be compared; how that grows in ranks,
// layers and meshes.
#include <benchmark/benchmark.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_search.h"
#include "sim/simulator.h"

namespace pfeife {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs";

/// A model on H100 hosts: the one set-up of all that is measured here.
struct Setup {
  Network network = read_network(kConfigs / "clusters/h100_sxm_hosts.yaml");
  MeshRun run;

  Setup(const std::string& architecture, std::int64_t global_batch) {
    run.architecture = read_architecture(kConfigs / "architectures" / (architecture + ".yaml"));
    run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
    run.type = DType::BFloat16;
    run.zero = 1;
    run.balanced = true;
    run.sequence_parallel = true;
    run.global_batch = global_batch;
  }

  void price(benchmark::State& state, std::int64_t tp, std::int64_t pp, std::int64_t dp) {
    run.mesh.sizes = {tp, 1, pp, dp};
    run.sequence_parallel = tp > 1;
    for (auto _ : state) benchmark::DoNotOptimize(price_mesh(run, network));
  }

  /// All but cp open, on two threads.
  void find(benchmark::State& state, std::int64_t devices, std::vector<std::int64_t> ep) {
    MeshQuestion question{.run = run, .devices = devices, .cp = {1}, .ep = std::move(ep)};
    MeshAnswer answer;
    for (auto _ : state) answer = find_mesh(question, network, {.threads = 2});
    state.counters["candidates"] = static_cast<double>(answer.candidates);
    state.counters["priced"] = static_cast<double>(answer.priced.size());
  }
};

/// Llama 3 405B, tp 8 x pp 16 x dp 128 on 16,384 devices.
void OneMesh(benchmark::State& state) { Setup("llama3_405b", 2048).price(state, 8, 16, 128); }
BENCHMARK(OneMesh)->Unit(benchmark::kMillisecond);

/// The published mesh and schedule of the same, priced once: its step simulated on links that are
/// shared, goal 1 s.
void OneMeshSimulated(benchmark::State& state) {
  Setup setup("llama3_405b", 2048);
  setup.run.mesh.sizes = {8, 1, 16, 128};
  setup.run.schedule = "interleaved_1f1b", setup.run.stages_per_rank = 8;
  const MeshPrice price = price_mesh(setup.run, setup.network);
  const Cluster cluster = pipeline_cluster(setup.run, setup.network);
  const DependencyGraph graph =
      dependencies(price.plan.lowered, stage_graph(price.plan.costs), price.placement,
                   {.queues = Queues::Pair, .links = Links::Shared});
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(graph, price.plan.costs, price.placement, cluster));
}
BENCHMARK(OneMeshSimulated)->Unit(benchmark::kMillisecond);

/// DeepSeek-V3 on pp 16 x dp 64 with experts over 64.
void OneMeshOfExperts(benchmark::State& state) {
  Setup setup("deepseek_v3", 4096);
  setup.run.mesh.experts = 64;
  setup.price(state, 1, 16, 64);
}
BENCHMARK(OneMeshOfExperts)->Unit(benchmark::kMillisecond);

void Ranks(benchmark::State& state) {
  Setup("llama3_405b", 64).price(state, 8, state.range(0), 1);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(Ranks)->RangeMultiplier(2)->Range(2, 64)->Unit(benchmark::kMillisecond)->Complexity();

void LayersOfModel(benchmark::State& state) {
  Setup setup("llama3_405b", 16);
  setup.run.architecture.layers = state.range(0);
  setup.price(state, 8, 8, 1);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(LayersOfModel)
    ->RangeMultiplier(2)
    ->Range(32, 1024)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

void AllMeshes(benchmark::State& state) {
  Setup("llama3_405b", 2048).find(state, state.range(0), {1});
}
BENCHMARK(AllMeshes)
    ->Arg(512)
    ->Arg(2048)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

/// DeepSeek-V3, also over how many devices its experts are divided.
void AllMeshesOfExperts(benchmark::State& state) {
  Setup("deepseek_v3", 4096).find(state, state.range(0), {});
}
BENCHMARK(AllMeshesOfExperts)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace pfeife
