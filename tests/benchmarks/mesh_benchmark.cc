// How long a mesh takes to be priced, and all meshes to be compared; how that grows in ranks,
// layers and meshes.
#include <benchmark/benchmark.h>

#include "planner/io/cluster/network_reader.h"
#include "planner/io/model/architecture_reader.h"
#include "planner/mesh/mesh_search.h"

namespace pfeife {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(PFEIFE_SOURCE_DIR) / "configs";

Network h100() { return read_network(kConfigs / "clusters/h100_sxm_hosts.yaml"); }
MeshRun run_of(const std::string& architecture) {
  MeshRun run;
  run.architecture = read_architecture(kConfigs / "architectures" / (architecture + ".yaml"));
  run.mesh.order = {Axis::Tensor, Axis::Context, Axis::Data, Axis::Pipeline};
  run.type = DType::BFloat16;
  run.zero = 1;
  run.balanced = true;
  run.sequence_parallel = true;
  return run;
}

/// Llama 3 405B, tp 8 x pp 16 x dp 128 on 16,384 devices.
void OneMesh(benchmark::State& state) {
  const Network network = h100();
  MeshRun run = run_of("llama3_405b");
  run.mesh.sizes = {8, 1, 16, 128};
  run.global_batch = 2048;
  for (auto _ : state) benchmark::DoNotOptimize(price_mesh(run, network));
}
BENCHMARK(OneMesh)->Unit(benchmark::kMillisecond);

/// DeepSeek-V3 on pp 16 x dp 64 with experts over 64.
void OneMeshOfExperts(benchmark::State& state) {
  const Network network = h100();
  MeshRun run = run_of("deepseek_v3");
  run.sequence_parallel = false;
  run.mesh.sizes = {1, 1, 16, 64};
  run.mesh.experts = 64;
  run.global_batch = 4096;
  for (auto _ : state) benchmark::DoNotOptimize(price_mesh(run, network));
}
BENCHMARK(OneMeshOfExperts)->Unit(benchmark::kMillisecond);

void Ranks(benchmark::State& state) {
  const Network network = h100();
  MeshRun run = run_of("llama3_405b");
  run.mesh.sizes = {8, 1, state.range(0), 1};
  run.global_batch = 64;
  for (auto _ : state) benchmark::DoNotOptimize(price_mesh(run, network));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(Ranks)->RangeMultiplier(2)->Range(2, 64)->Unit(benchmark::kMillisecond)->Complexity();

void LayersOfModel(benchmark::State& state) {
  const Network network = h100();
  MeshRun run = run_of("llama3_405b");
  run.architecture.layers = state.range(0);
  run.mesh.sizes = {8, 1, 8, 1};
  run.global_batch = 16;
  for (auto _ : state) benchmark::DoNotOptimize(price_mesh(run, network));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(LayersOfModel)
    ->RangeMultiplier(2)
    ->Range(32, 1024)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

/// All meshes of so many devices for Llama 3 405B, all but cp and ep open, on two threads.
void AllMeshes(benchmark::State& state) {
  const Network network = h100();
  MeshQuestion question;
  question.run = run_of("llama3_405b");
  question.run.global_batch = 2048;
  question.devices = state.range(0);
  question.cp = {1};
  std::size_t candidates = 0, priced = 0;
  for (auto _ : state) {
    const MeshAnswer answer = find_mesh(question, network, {.threads = 2});
    candidates = answer.candidates, priced = answer.priced.size();
  }
  state.counters["candidates"] = static_cast<double>(candidates);
  state.counters["priced"] = static_cast<double>(priced);
}
BENCHMARK(AllMeshes)
    ->Arg(512)
    ->Arg(2048)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace pfeife
