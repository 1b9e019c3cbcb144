// Reading the models that are shipped: from the archive to a Graph.
#include <benchmark/benchmark.h>

#include "planner/io/model/pt2_reader.h"

namespace pfeife {
namespace {

void BM_ReadPt2(benchmark::State& state, const char* model) {
  const std::string path = std::string(PFEIFE_SOURCE_DIR) + "/configs/models/" + model + ".pt2";
  for (auto _ : state) benchmark::DoNotOptimize(read_pt2(path));
}
BENCHMARK_CAPTURE(BM_ReadPt2, vit_g14, "vit_g14")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ReadPt2, sdxl_unet, "sdxl_unet")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pfeife
