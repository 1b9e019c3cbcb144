// FLOPs of the shipped archives, beside torch's own count
// (experiments/studies/flop_check/flops.csv).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "planner/cost/operators/work.h"
#include "planner/io/files/csv_table.h"
#include "planner/io/model/pt2_reader.h"

namespace pfeife {
namespace {

struct Flop {
  double forward = 0, backward = 0;
};
Flop flops_of(const Graph& graph) {
  const GraphFacts facts(graph, Precision::Fp32);
  const SavedMemory saved = saved_memory(facts, DeviceType::Gpu);
  const KernelList kernels(facts, saved, DeviceType::Gpu);
  Flop sum;
  for (const NodeId n : nodes_of(graph))
    for (const Kernel& kernel : kernels.at(n))
      (kernel.pass == Pass::Forward ? sum.forward : sum.backward) +=
          static_cast<double>(kernel.times) * kernel.flops.value;
  return sum;
}

TEST(FlopCheck, ShippedArchivesAreWithinOnePercentOfTorchOrTheTableSaysWhy) {
  const CsvTable table = CsvTable::parse(
      read_text_file(PFEIFE_SOURCE_DIR "/experiments/studies/flop_check/flops.csv"));
  std::size_t shipped = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string name = table.at(row, "model").text;
    const auto archive =
        std::filesystem::path(PFEIFE_SOURCE_DIR "/configs/models") / (name + ".pt2");
    const auto figure = [&](const std::string& column) {
      return number_of(table.at(row, column), column);
    };
    const double forward = figure("forward_planner"), backward = figure("backward_planner");
    const auto near = [&](double ours, const char* torch) {
      return std::abs(ours / figure(torch) - 1) <= 0.01;
    };
    EXPECT_TRUE((near(forward, "forward_torch") && near(backward, "backward_torch")) ||
                !table.at(row, "reason").text.empty())
        << name;
    if (!std::filesystem::exists(archive)) continue;
    ++shipped;
    const Flop flops = flops_of(read_pt2(archive));
    EXPECT_NEAR(flops.forward / forward, 1, 1e-9) << name;
    EXPECT_NEAR(flops.backward / backward, 1, 1e-9) << name;
  }
  EXPECT_GE(shipped, 20u);
}

}  // namespace
}  // namespace pfeife
